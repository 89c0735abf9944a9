"""Waiting with a timeout, whose error has the log of the processes that a test waits for.

Times are written for an idle machine. A busy one takes longer: each time is multiplied by the environment's
`VGPU_TIME_FACTOR`, or by 4. `VGPU_TIME_FACTOR=1 make e2e` holds an idle machine to the times as they are written.
"""

import os
import time
from collections.abc import Callable, Sequence
from typing import Final, Protocol, TypeVar

TIME_FACTOR: Final = float(os.environ.get("VGPU_TIME_FACTOR", "4"))
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


def allowed(seconds: float) -> float:
    """Return how long something may take here that takes at most `seconds` on an idle machine."""
    return seconds * TIME_FACTOR


def until(check: Callable[[], T | None], what: str, within_s: float, processes: Sequence[AwaitedProcess] = ()) -> T:
    """Return the first true result of `check`.

    Args:
        check: asked again and again; what it returns ends the wait where it is true.
        what: is awaited, for the message.
        within_s: the longest wait on an idle machine.
        processes: those that have to do it.

    Raises:
        Overdue: it took longer than `allowed(within_s)`, or a process has ended.
    """
    within_s = allowed(within_s)
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
