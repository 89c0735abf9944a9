"""What was computed of an object, kept for that object itself.

Pods with equal requests share one request (`equal_pods`). To find it by its identity takes a twentieth of the time in
which its fields are compared, and that comparison would take longer than most of what is computed of a request.
"""

from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

MAX_KEPT: Final = 1_024


class IdentityCache(Generic[K, V]):
    """Keeps the results of `compute` for the last `max_kept` objects, which must never change."""

    def __init__(self, compute: Callable[..., V], max_kept: int = MAX_KEPT) -> None:
        self._compute = compute
        self._max_kept = max_kept
        self._known: dict[tuple[Hashable, ...], tuple[K, V]] = {}  # an object that is kept here keeps its identity

    def of(self, obj: K, *also: Hashable) -> V:
        """Return `compute(obj, *also)`, computed once for an object and equal other arguments."""
        key = (id(obj), *also)
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= self._max_kept:
                del self._known[next(iter(self._known))]
            found = self._known[key] = obj, self._compute(obj, *also)
        return found[1]
