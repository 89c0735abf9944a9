"""A bounded memory in which owners have equal parts: the crowd of one displaces nothing that another keeps there."""

from collections import OrderedDict, defaultdict
from collections.abc import Iterator
from typing import Generic, TypeVar

Owner = TypeVar("Owner")
K = TypeVar("K")
V = TypeVar("V")


class FairCache(Generic[Owner, K, V]):
    """Values by key, each of which belongs to one owner.

    Where there are more than `size` values, the owner of most loses the one that was put longest ago. Of owners with
    equally many, it is the one that put nothing for longest. No operation takes longer where there are many owners.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._owner_of: dict[K, Owner] = {}
        self._by_owner: dict[Owner, OrderedDict[K, V]] = {}
        self._owners_of_count = defaultdict[int, OrderedDict[Owner, None]](OrderedDict)
        self._most = 0

    def __len__(self) -> int:
        """Number of values."""
        return len(self._owner_of)

    def items(self) -> Iterator[tuple[K, V]]:
        """Yield the keys and values; do not change them meanwhile."""
        for own in self._by_owner.values():
            yield from own.items()

    def get(self, key: K) -> V | None:
        """Return a value; None where the key is not known."""
        return self._by_owner[self._owner_of[key]][key] if key in self._owner_of else None

    def put(self, owner: Owner, key: K, value: V) -> V | None:
        """Keep a value, in place of the one with its key; return the value that was displaced by it, if any was."""
        self.pop(key)
        own = self._by_owner.setdefault(owner, OrderedDict())
        own[key], self._owner_of[key] = value, owner
        self._count(owner, len(own) - 1, len(own))
        if len(self) <= self._size:
            return None
        crowded = next(iter(self._owners_of_count[self._most]))
        return self.pop(next(iter(self._by_owner[crowded])))

    def pop(self, key: K) -> V | None:
        """Forget a value and return it; None where the key is not known."""
        if key not in self._owner_of:
            return None
        owner = self._owner_of.pop(key)
        own = self._by_owner[owner]
        value = own.pop(key)
        self._count(owner, len(own) + 1, len(own))
        if not own:
            del self._by_owner[owner]
        return value

    def _count(self, owner: Owner, before: int, now: int) -> None:
        """Note that an owner has another number of values."""
        if before:
            same = self._owners_of_count[before]
            del same[owner]
            if not same:
                del self._owners_of_count[before]
        if now:
            self._owners_of_count[now][owner] = None
        self._most = now if now > self._most or self._most not in self._owners_of_count else self._most
