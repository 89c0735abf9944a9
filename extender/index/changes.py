"""What `fragmentation` knows of each pod class on all rows. A later question looks only at rows written since.

What a pod changes on a node does not depend on the prices: new prices cost one sum over the typical pods.
"""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

import numpy as np

from extender.index.copies import BLOCK, Copies, copies
from extender.index.nodes import Ints, NodeIndex, Places
from vgpu.placement import fragmentation
from vgpu.placement.fragmentation import Change
from vgpu.placement.question import Question
from vgpu.placement.room import Ask, after

MAX_ASKS: Final = 32  # of 1.5 MB each, for 32 typical pods and 5,000 nodes


@dataclass(slots=True)
class _Known:
    """A change for each row: `lost` has the shape (typical pods, rows), `rest` what else a Change has, and rows."""

    lost: Ints
    rest: Ints
    version: int
    typical: tuple[Ask, ...]

    def write(self, index: NodeIndex, ask: Ask, before: Ints, places: Places) -> None:
        """Look at these rows again; `before` is the room of all rows for typical pods."""
        room = index.room(places)
        left = after(room, ask)
        self.lost[:, places] = before[:, places] - copies(left, self.typical, len(places))
        for number, each in enumerate((room.share, room.cpu_milli, left.share, left.cpu_milli)):
            self.rest[number, places] = each


class Changes:
    """The changes of the pod classes that were asked about last."""

    def __init__(self, index: NodeIndex, room: Copies) -> None:
        self._index = index
        self._room = room
        self._known: OrderedDict[Ask, _Known] = OrderedDict()

    def costs(self, question: Question) -> Ints:
        """Return what a pod costs on each row."""
        known = self._updated(question)
        change = Change(list(known.lost), *known.rest)
        costs: Ints = np.broadcast_to(fragmentation.priced(change, question.demand), self._index.size).astype(np.int64)
        return costs

    def _updated(self, question: Question) -> _Known:
        index, ask, typical = self._index, question.ask, question.demand.asks
        known = self._known.get(ask)
        if known is None or known.typical != typical or known.rest.shape[1] != index.size:
            size = index.size
            known = _Known(np.zeros((len(typical), size), np.int64), np.zeros((4, size), np.int64), 0, typical)
            self._known[ask] = known
        if known.version != index.version:
            before = self._room.of(typical)
            changed = np.flatnonzero(index.versions > known.version)
            for places in np.split(changed, range(BLOCK, len(changed), BLOCK)):
                known.write(index, ask, before, places)
            known.version = index.version
        self._known.move_to_end(ask)
        if len(self._known) > MAX_ASKS:
            self._known.popitem(last=False)
        return known
