"""Answers about a whole snapshot, which are made once for all clients that ask while it is the latest one."""

from collections.abc import Callable, Hashable
from typing import Final

MOST: Final = 16  # of one snapshot: callers with equal rights share an answer


class SnapshotAnswers:
    """The encoded answers of the latest snapshot, by what they depend on beside it."""

    def __init__(self) -> None:
        self._number = -1
        self._made: dict[Hashable, bytes] = {}

    def get(self, number: int, key: Hashable, make: Callable[[], bytes]) -> bytes:
        """Return the answer for snapshot `number`; `make` is called where it is not known."""
        if number != self._number:
            self._number = number
            self._made = {}
        if key not in self._made:
            if len(self._made) >= MOST:
                self._made.pop(next(iter(self._made)))
            self._made[key] = make()
        return self._made[key]
