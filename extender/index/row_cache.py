"""Numbers of all rows, kept by what was asked. A later question computes only the rows that were written since."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final

import numpy as np

from extender.index.nodes import Ints, NodeIndex, Places

BLOCK: Final = 512  # rows that are computed in one pass: the arrays stay in the processor's cache
_NOTHING: Final = (0, np.zeros((0, 0), np.int64))


class RowCache:
    """Arrays of the shape (fields, rows) by key; beyond `max_keys`, what was asked longest ago is dropped."""

    def __init__(self, index: NodeIndex, max_keys: int) -> None:
        self._index = index
        self._max_keys = max_keys
        self._known: OrderedDict[Hashable, tuple[int, Ints]] = OrderedDict()

    def of(self, key: Hashable, fields: int, compute: Callable[[Places], Ints]) -> Ints:
        """Return the fields of all rows; `compute` returns those of some rows. Do not change the array.

        Rows that were never written are 0.
        """
        index = self._index
        version, found = self._known.get(key, _NOTHING)
        if found.shape != (fields, index.size):
            version, found = 0, np.zeros((fields, index.size), np.int64)
        if version != index.version:
            changed = (index.versions > version).nonzero()[0]
            for first in range(0, len(changed), BLOCK):
                places = changed[first : first + BLOCK]
                found[:, places] = compute(places)
        self._known[key] = index.version, found
        self._known.move_to_end(key)
        if len(self._known) > self._max_keys:
            self._known.popitem(last=False)
        return found
