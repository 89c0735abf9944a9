"""Snapshots in pieces: only what has changed since the last one goes to the admin's process. Pure.

    before = Snapshot(0)
    for piece in pieces(before, after):   # where the snapshot is
        mirror.apply(piece)               # where its copy is
    mirror.take(taken(before, after)) == after

A piece has few objects, and the search for them ends after some: the caller can give its event loop back in between.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import is_
from typing import Any, Final, TypeVar

from extender.admin.exchange.messages import Piece, SnapshotEnd
from extender.admin.exchange.snapshots import ClusterSnapshot
from vgpu.placement.snapshot import NodeView

T = TypeVar("T")
PER_PIECE: Final = 16  # objects: their pickle takes half a millisecond
PER_LOOK: Final = 500  # objects compared


def is_same_view(one: NodeView, other: NodeView) -> bool:
    """Whether two views of a node are equal: the cluster makes another state whenever a node changes."""
    is_alike = one.state is other.state and one.blocked is other.blocked and one.marks is other.marks
    return is_alike and one.allocatable == other.allocatable and one.silent_since == other.silent_since


_SAME: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "pods": is_,
    "gpunodes": is_,
    "views": is_same_view,
    "decisions": is_,
}


def pieces(before: ClusterSnapshot, after: ClusterSnapshot) -> Iterator[Piece | None]:
    """Yield the differences between two snapshots, and None where only time has passed."""
    for mapping, is_same in _SAME.items():
        old, new = getattr(before, mapping), getattr(after, mapping)
        kept = len(new)
        for items in _batches(new.items(), PER_LOOK):
            others = [key for key, value in items if old.get(key) is not value]
            changed = [key for key in others if key not in old or not is_same(old[key], new[key])]
            kept -= sum(key not in old for key in others)
            for part in _batches(changed, PER_PIECE):
                yield Piece(mapping, {key: new[key] for key in part})
            yield None
        for keys in _batches(old if len(old) > kept else (), PER_LOOK):
            if gone := [key for key in keys if key not in new]:
                yield Piece(mapping, {}, gone)
            yield None


def _batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    rest = iter(items)
    while batch := list(itertools.islice(rest, size)):
        yield batch


def taken(before: ClusterSnapshot, after: ClusterSnapshot) -> SnapshotEnd:
    """Return the end of a snapshot."""
    policies = None if _has_same_policies(before, after) else after.policies
    return SnapshotEnd(after.number, after.slice_mib, after.why_not_bound, policies, after.health, after.leader)


def _has_same_policies(one: ClusterSnapshot, other: ClusterSnapshot) -> bool:
    mine, others = one.policies, other.policies
    is_learned = mine.demand is others.demand and mine.models.names == others.models.names
    return is_learned and (mine.node_policy, mine.gpu_policy) == (others.node_policy, others.gpu_policy)


class Mirror:
    """The copy. Every snapshot that it has made stays as it is."""

    def __init__(self) -> None:
        self._last = ClusterSnapshot(0)
        self._next: dict[str, dict[str, Any]] = {}

    def apply(self, piece: Piece) -> None:
        """Take a part of the next snapshot."""
        mapping = self._next.get(piece.mapping)
        if mapping is None:
            mapping = self._next[piece.mapping] = dict(getattr(self._last, piece.mapping))
        mapping.update(piece.changed)
        for key in piece.gone:
            mapping.pop(key, None)

    def take(self, end: SnapshotEnd) -> ClusterSnapshot:
        """Return the next snapshot, of which all pieces have come."""
        mappings = {name: self._next.get(name, getattr(self._last, name)) for name in _SAME}
        policies = end.policies or self._last.policies
        self._last = ClusterSnapshot(
            end.number,
            slice_mib=end.slice_mib,
            why_not_bound=end.why_not_bound,
            policies=policies,
            health=end.health,
            leader=end.leader,
            **mappings,
        )
        self._next = {}
        return self._last
