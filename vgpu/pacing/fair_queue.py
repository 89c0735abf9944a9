"""A queue in which owners have turns: the crowd of one neither delays nor displaces what others put in."""

import math
from collections import OrderedDict
from typing import Generic, TypeVar

Owner = TypeVar("Owner")
K = TypeVar("K")
V = TypeVar("V")


class FairQueue(Generic[Owner, K, V]):
    """Values by owner and key. A value replaces the one with its key, in its place.

    Where there are more than `size` values, the owner of most loses its oldest one; by default there is no bound.
    """

    def __init__(self, size: float = math.inf) -> None:
        self._size = size
        self._by_owner: OrderedDict[Owner, OrderedDict[K, V]] = OrderedDict()
        self._count = 0

    def __len__(self) -> int:
        """Number of values."""
        return self._count

    def put(self, owner: Owner, key: K, value: V) -> None:
        """Add a value behind the others of its owner; an owner without values has its turn after all others."""
        own = self._by_owner.setdefault(owner, OrderedDict())
        self._count += key not in own
        own[key] = value
        if self._count > self._size:
            crowded = max(self._by_owner, key=lambda known: len(self._by_owner[known]))
            self._remove(crowded, next(iter(self._by_owner[crowded])))

    def first(self) -> tuple[Owner, K, V]:
        """Return the oldest value of the owner whose turn it is, which stays in the queue. Raises StopIteration."""
        owner = next(iter(self._by_owner))
        return owner, *next(iter(self._by_owner[owner].items()))

    def done(self, owner: Owner, key: K, value: V) -> bool:
        """Remove a value, unless another one has replaced it; its owner has its next turn after all others.

        Return whether the value was removed.
        """
        is_there = self._by_owner.get(owner, OrderedDict[K, V]()).get(key) is value
        if is_there:
            self._remove(owner, key)
        if owner in self._by_owner:
            self._by_owner.move_to_end(owner)
        return is_there

    def pop(self, owner: Owner, key: K) -> V | None:
        """Remove a value out of its turn and return it; None where it is not in the queue."""
        value = self._by_owner.get(owner, OrderedDict[K, V]()).get(key)
        if value is not None:
            self._remove(owner, key)
        return value

    def _remove(self, owner: Owner, key: K) -> None:
        own = self._by_owner[owner]
        del own[key]
        self._count -= 1
        if not own:
            del self._by_owner[owner]
