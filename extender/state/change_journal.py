"""Which objects have changed: the keys of the last changes, in order. A reader remembers how far it has read.

So a copy of the state is brought up to date at a cost that follows the number of changes, not of objects. The journal
does not wait for readers: it forgets the oldest changes, and a reader that has missed some looks at everything.
"""

from collections import deque
from itertools import islice
from typing import Final, Generic, TypeVar

K = TypeVar("K")

MOST: Final = 16_384  # of 100 bytes


class ChangeJournal(Generic[K]):
    """The keys of the last `most` changes; `count` is the number of all changes since the start."""

    def __init__(self, most: int = MOST) -> None:
        self.count = 0
        self._last = deque[K](maxlen=most)

    def add(self, key: K) -> None:
        """Take that an object is new, changed or gone."""
        self._last.append(key)
        self.count += 1

    def since(self, count: int) -> set[K] | None:
        """Return what has changed after the first `count` changes; None where not all of that is known any more."""
        later = self.count - count
        return set(islice(reversed(self._last), later)) if later <= len(self._last) else None
