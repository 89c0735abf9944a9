"""Waiting with an end: what was awaited, for how long, and the last words of those who should have done it."""

import time
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

_SHORTEST_S = 0.05
_LONGEST_S = 0.5

T = TypeVar("T")


class Witness(Protocol):
    """Somebody to ask when a wait fails."""

    @property
    def name(self) -> str: ...
    def tail(self) -> str: ...
    def gone(self) -> bool:
        """Whether it ended though it should run: then nothing is worth waiting for."""
        ...


class Overdue(AssertionError):
    """What was awaited did not come; the message carries the log tails."""


def until(check: Callable[[], T | None], what: str, within_s: float, witnesses: Sequence[Witness] = ()) -> T:
    """Return the first truthy answer of `check`; raises Overdue after `within_s`, or at once when a witness died."""
    deadline = time.monotonic() + within_s
    pause = _SHORTEST_S
    while True:
        answer = check()
        if answer:
            return answer
        _still_hopeful(what, deadline, within_s, witnesses)
        time.sleep(pause)
        pause = min(pause * 1.2, _LONGEST_S)  # who waits long must not slow down what is awaited


def _still_hopeful(what: str, deadline: float, within_s: float, witnesses: Sequence[Witness]) -> None:
    dead = [witness.name for witness in witnesses if witness.gone()]
    if dead:
        raise Overdue(f"{what}: {', '.join(dead)} ended\n{_tails(witnesses)}")
    if time.monotonic() > deadline:
        raise Overdue(f"{what}: not within {within_s:g} s\n{_tails(witnesses)}")


def _tails(witnesses: Sequence[Witness]) -> str:
    return "\n".join(f"--- {witness.name}\n{witness.tail()}" for witness in witnesses)
