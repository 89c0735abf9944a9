"""What was computed of each object for an earlier snapshot, and is right still: most objects have not changed since."""

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

K = TypeVar("K")
One = TypeVar("One")
Other = TypeVar("Other")
T = TypeVar("T")


class KeptParts(Generic[K, One, Other, T]):
    """By key, what was computed from two objects: it is right as long as they are the same objects."""

    def __init__(self) -> None:
        self._known: dict[K, tuple[One, Other, T]] = {}

    def of(self, objects: Iterable[tuple[K, One, Other]], make: Callable[[One, Other], T]) -> list[T]:
        """Return what `make` returns for each pair of objects, or returned for the last call; forget all others."""
        last, now = self._known, dict[K, tuple[One, Other, T]]()
        for key, one, other in objects:
            known = last.get(key)
            if known is None or known[0] is not one or known[1] is not other:
                known = (one, other, make(one, other))
            now[key] = known
        self._known = now
        return [known[2] for known in now.values()]
