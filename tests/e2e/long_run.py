"""What the longer runs on a cluster of their own have in common: options, their end, and what they leave."""

import argparse
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, TypeVar

from cluster import missing, progress
from cluster.programs import binaries
from tests.e2e.monitor.findings import Findings


class Named(Protocol):
    """A fault, which is chosen by a part of its name."""

    @property
    def name(self) -> str:
        """A few words."""


F = TypeVar("F", bound=Named)


def options(program: str, description: str, minutes: float, seed: str) -> argparse.ArgumentParser:
    """Return the options of every run; `program` is the package's last name, `seed` what the seed decides."""
    parser = argparse.ArgumentParser(prog=f"python -m tests.e2e.{program}", description=description)
    parser.add_argument("--minutes", type=float, default=minutes, help="how long (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help=f"{seed} (default: %(default)s)")
    folder = binaries.REPOSITORY / "build" / program
    parser.add_argument("--out", type=Path, default=folder, help="folder of the findings")
    return parser


def add_only(parser: argparse.ArgumentParser) -> None:
    """Add the option that chooses faults."""
    parser.add_argument("--only", nargs="*", default=[], help="faults whose name contains one of these words")


def chosen(faults: Sequence[F], words: Sequence[str]) -> list[F]:
    """Return the faults whose name contains one of the words; all without words."""
    return [fault for fault in faults if not words or any(word in fault.name for word in words)]


def time_is_left(minutes: float) -> Callable[[], bool]:
    """Return whether the minutes from now on are not over."""
    end = time.monotonic() + minutes * 60
    return lambda: time.monotonic() < end


@contextmanager
def until_interrupted() -> Iterator[None]:
    """Go on behind the statement's body after Ctrl-C or SIGTERM in it."""
    try:
        yield
    except KeyboardInterrupt:
        progress.say("interrupted")


def finish(findings: Findings, lines: Sequence[str], out: Path) -> int:
    """Write and print the summary; return the exit status: 1 where anything was found."""
    text = "\n".join(lines) + "\n"
    (out / "summary.txt").write_text(text)
    sys.stdout.write(text)
    return 1 if findings.counts() else 0


def exit_with(main: Callable[[], int]) -> None:
    """End the process with the status of `main`, or with a message where it lacks programs.

    Both signals end it, also in the background of a script, where a shell has Ctrl-C ignored.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    try:
        sys.exit(main())
    except missing.Missing as lacking:
        sys.exit(str(lacking))
