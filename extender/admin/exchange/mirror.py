"""The admin's copy of the cluster, made of the pieces that the extender sends."""

from dataclasses import replace
from typing import Any, Final

from extender.admin.exchange.messages import Piece, SnapshotEnd
from extender.admin.exchange.snapshots import ClusterSnapshot

MAPPINGS: Final = ("pods", "gpunodes", "views", "decisions", "held_usages")


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
        mappings = {name: self._next.get(name, getattr(self._last, name)) for name in MAPPINGS}
        policies, usages = end.policies or self._last.policies, mappings.pop("held_usages")
        self._last = ClusterSnapshot(
            end.number,
            slice_mib=end.slice_mib,
            why_not_bound=end.why_not_bound,
            policies=policies,
            health=end.health,
            leader=end.leader,
            held=replace(end.held, usages=usages) if end.held is not None else None,
            impossible_gangs=end.impossible_gangs,
            **mappings,
        )
        self._next = {}
        return self._last
