"""`python -m tests.failed_tests`: the IDs of the tests that failed when they ran last, from pytest's cache, sorted."""

import json
from pathlib import Path

CACHE = Path(__file__).parents[1] / ".pytest_cache" / "v" / "cache" / "lastfailed"


def ids(cache: Path = CACHE) -> list[str]:
    """Return the IDs, sorted by bytes as `comm` needs them; none where no test has failed yet."""
    return sorted(json.loads(cache.read_text()), key=str.encode) if cache.exists() else []


def main() -> None:
    for test in ids():
        print(test)  # noqa: T201 - .ci/run compares what it prints


if __name__ == "__main__":
    main()
