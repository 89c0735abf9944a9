"""`python -m tests.contract.documents`: prints every documented command, and which test runs it or only reads it."""

import sys
from collections.abc import Iterator

from tests.contract.documents import pages

# Pages whose code blocks of the shell are run as they are written.
RUN_BY = {"docs/tutorial.md": "tests/e2e/install/test_tutorial.py"}


def rows() -> Iterator[tuple[str, str, str]]:
    """Yield where each command is, its words, and the test that runs it, `-` for none."""
    for page in pages.pages():
        if not page.is_of_its_time:
            for where, command in pages.commands(page):
                yield where, " ".join(command.words), RUN_BY.get(page.path, "-")


def main() -> None:
    """Print the table, and how many commands are run."""
    listed = list(rows())
    for where, words, test in listed:
        sys.stdout.write(f"{where:<32} {test:<28} {words[:110]}\n")
    run = sum(test != "-" for _, _, test in listed)
    sys.stdout.write(f"{run} of {len(listed)} commands are run, the others are compared with their programs' options\n")


if __name__ == "__main__":
    main()
