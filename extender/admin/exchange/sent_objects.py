"""What the admin's process has of one mapping of the snapshot, and the pieces that bring it up to date."""

import itertools
from collections.abc import Callable, Iterable, Iterator
from operator import is_
from typing import Final, Generic, TypeVar

from extender.admin.exchange.messages import Piece
from vgpu.placement.snapshot import NodeView

K = TypeVar("K", bound=str)
V = TypeVar("V")
T = TypeVar("T")

PER_PIECE: Final = 16  # objects: their pickle takes half a millisecond


class SentObjects(Generic[K, V]):
    """One mapping. `is_same` says whether the copy of an object needs no other one in its place."""

    def __init__(self, mapping: str, is_same: Callable[[V, V], bool] = is_) -> None:
        self._mapping = mapping
        self._is_same = is_same
        self._sent: dict[K, V] = {}

    def keys(self) -> tuple[K, ...]:
        """Return the keys of what has been sent and is not gone."""
        return tuple(self._sent)

    def pieces(self, keys: Iterable[K], now: Callable[[K], V | None]) -> Iterator[Piece]:
        """Yield pieces with those of the named objects that have changed.

        `now` returns an object in its present state, or None if it no longer exists.
        """
        changed: dict[K, V] = {}
        gone: list[K] = []
        for key in keys:
            before, after = self._sent.get(key), now(key)
            if after is None:
                if before is not None:
                    gone.append(key)
                    del self._sent[key]
            elif before is None or not (before is after or self._is_same(before, after)):
                changed[key] = self._sent[key] = after
        for part in batches(changed, PER_PIECE):
            yield Piece(self._mapping, {key: changed[key] for key in part})
        if gone:
            yield Piece(self._mapping, {}, gone)


def batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield the items in lists of at most `size`."""
    rest = iter(items)
    while batch := list(itertools.islice(rest, size)):
        yield batch


def is_same_view(one: NodeView, other: NodeView) -> bool:
    """Whether two views of a node are equal: the cluster makes another state whenever a node changes."""
    is_alike = one.state is other.state and one.blocked is other.blocked and one.marks is other.marks
    return is_alike and one.allocatable == other.allocatable and one.silent_since == other.silent_since
