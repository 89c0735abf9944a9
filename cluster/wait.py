"""Waiting with a timeout, whose error has the log of the processes that a test waits for."""

import time
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

_SHORTEST_S = 0.05
_LONGEST_S = 0.5

T = TypeVar("T")


class AwaitedProcess(Protocol):
    """A process that has to do what a test waits for."""

    @property
    def name(self) -> str: ...
    def tail(self) -> str: ...
    def has_ended(self) -> bool:
        """Whether the process was started and has ended by itself."""
        ...


class Overdue(AssertionError):
    """A timeout, or the end of an awaited process; the message has the last log lines of each process."""


def until(check: Callable[[], T | None], what: str, within_s: float, processes: Sequence[AwaitedProcess] = ()) -> T:
    """Return the first true result of `check`; raises Overdue after `within_s`, or as soon as a process has ended."""
    deadline = time.monotonic() + within_s
    pause = _SHORTEST_S
    while True:
        result = check()
        if result:
            return result
        _raise_if_overdue(what, deadline, within_s, processes)
        time.sleep(pause)
        pause = min(pause * 1.2, _LONGEST_S)  # a long wait checks less often, to leave the CPU to others


def _raise_if_overdue(what: str, deadline: float, within_s: float, processes: Sequence[AwaitedProcess]) -> None:
    ended = [process.name for process in processes if process.has_ended()]
    if ended:
        raise Overdue(f"{what}: {', '.join(ended)} ended\n{_tails(processes)}")
    if time.monotonic() > deadline:
        raise Overdue(f"{what}: not within {within_s:g} s\n{_tails(processes)}")


def _tails(processes: Sequence[AwaitedProcess]) -> str:
    return "\n".join(f"--- {process.name}\n{process.tail()}" for process in processes)
