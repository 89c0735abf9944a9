"""How long recovery takes after each fault, as a result for the table in docs/operations.md.

    python -m tests.e2e.chaos --minutes 30 --seed 1 --out DIR
    python -m benchmarks.outages DIR/summary.txt

Reads the summary of a chaos run of this checkout; --tree names another checkout, which was measured. A row is the time
from the end of a fault until a new pod runs and every part is ready.
"""

import argparse
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.record import fingerprint, machine, recorder
from benchmarks.record.result import ResultRow, slug
from benchmarks.recovery.goals import SOURCES

LINE = re.compile(r"(?P<fault>\S.*?) +(?P<count>\d+) +(?P<median>\d+\.\d) +(?P<worst>\d+\.\d) +(?P<failed>\d+)")


def rows(summary: str) -> Iterator[ResultRow]:
    """Yield a row for each fault with an end. Raises ValueError where there is none."""
    found = [match for match in map(LINE.fullmatch, summary.splitlines()) if match]
    if not found:
        raise ValueError("the summary has no line `fault count median worst failed`")
    for match in found:
        details = {"count": int(match["count"]), "failed": int(match["failed"])}
        name = slug("outage", match["fault"])
        yield ResultRow(id=name, value=float(match["median"]), unit="s", worst=float(match["worst"]), details=details)


def main() -> int:
    """Write the result, and print its path."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("summary", type=Path, help="summary.txt of a chaos run")
    parser.add_argument("--tree", type=Path, default=machine.ROOT, help="the checkout that was measured")
    parser.add_argument("--commit", help="of that checkout; by default of this one")
    parser.add_argument("--json", type=Path, help="by default a file in benchmarks/results")
    asked = parser.parse_args()
    written = recorder.ResultRecorder(asked.json, "outages", ()).result
    at = datetime.fromtimestamp(asked.summary.stat().st_mtime, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    found = replace(
        written,
        arguments=(),
        commit=asked.commit or written.commit,
        date=at,
        fingerprints=fingerprint.of_folders(asked.tree, SOURCES),
        rows=tuple(rows(asked.summary.read_text())),
    )
    path = asked.json or recorder.RESULTS / recorder.file_name(found)
    recorder.write(path, found)
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
