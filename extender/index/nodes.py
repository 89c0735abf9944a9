"""The arrays: a row for each node, and for each card of it a column.

`amounts` has the shape (fields, columns, rows), so that one field of one column lies in one piece. Columns without a
card are closed and have 0 in every other field. A row that is free has no card. `version` numbers the writes: a row
that was written after a judgement is judged again.
"""

import itertools
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from extender.index import codes
from extender.index import row as rows
from extender.index.codes import CODES, FITS, NO_CARD, UNDECIDED
from extender.index.row import FIELDS, IndexRow, ModelNames
from vgpu.domain.cards.reasons import Reason
from vgpu.domain.cards.share import CardState, HostRoom
from vgpu.domain.identifiers import NO_NODE, NodeName
from vgpu.placement import rank
from vgpu.placement.models import Models
from vgpu.placement.room import CardRoom, NodeRoom

MAX_COLUMNS: Final = 16  # a node with more cards is placed exactly
_FIRST_ROWS: Final = 64
_IS_OPEN: Final = np.isin(np.arange(UNDECIDED + 1), (FITS, UNDECIDED))  # by a row's code
_NO_HOST: Final = HostRoom(0, 0)
_NEVER: Final = -1.0  # the duration of a Lease without a holder

Ints = NDArray[np.int64]
Codes = NDArray[np.uint8]
Places = NDArray[np.intp]  # rows
Names = NDArray[np.object_]  # of bytes: JSON


class NodeIndex:
    """Every node that has cards, as arrays. Times are monotonic seconds; `models` gives models their bits."""

    def __init__(self, models: Models) -> None:
        self.models = ModelNames()
        self._bits = models
        self.version = 0
        self._rows: dict[NodeName, int] = {}
        self._free: list[int] = []
        self._names: list[NodeName] = []
        self._columns = 1
        self._known: dict[int, Sequence[CardState]] = {}  # by row: the cards that its columns have
        self._allocate(_FIRST_ROWS)

    def _allocate(self, size: int) -> None:
        self.amounts: Ints = np.zeros((len(FIELDS), self._columns, size), np.int64)
        self.amounts[_CLOSED] = NO_CARD
        self.cards: Ints = np.zeros(size, np.int64)
        self.host: Ints = np.zeros((2, size), np.int64)
        self.left: Ints = np.zeros((2, size), np.int64)
        self.blocked: Codes = np.zeros(size, np.uint8)
        self.versions: Ints = np.zeros(size, np.int64)
        self.order: NDArray[np.uint64] = np.zeros(size, np.uint64)
        self.encoded: Names = np.empty(size, object)
        self._renewed = np.zeros(size)
        self._duration = np.full(size, _NEVER)

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def size(self) -> int:
        """Number of rows, used or free."""
        return len(self.cards)

    def put(self, row: IndexRow) -> None:
        """Write a node's row."""
        place = self._place(row.name)
        states = row.state.cards if row.state else ()
        is_wide = len(states) > MAX_COLUMNS
        self._put_cards(place, () if is_wide else states)
        self.cards[place] = len(states)
        host = row.state.host if row.state else _NO_HOST
        self.host[0, place], self.host[1, place] = host.cpu_milli, host.memory_mib
        self.left[0, place], self.left[1, place] = row.left
        self.blocked[place] = CODES[row.blocked] if row.blocked else UNDECIDED if is_wide else FITS
        self.put_lease(row.name, row.renewed, row.duration_s)
        self._touch(place)

    def remove(self, name: NodeName) -> None:
        """Free a node's row."""
        place = self._rows.pop(name, None)
        if place is not None:
            self._names[place] = NO_NODE
            self._known.pop(place, None)
            self._duration[place] = _NEVER
            self._free.append(place)

    def put_lease(self, name: NodeName, renewed: float, duration_s: float | None) -> None:
        """Take the Lease of a node's device plugin: when it changed last; None where it has no holder."""
        place = self._rows.get(name)
        if place is not None:
            self._renewed[place] = renewed
            self._duration[place] = _NEVER if duration_s is None else duration_s

    def known(self) -> list[NodeName]:
        """Return the names of all nodes that have cards."""
        return list(self._rows)

    def row_of(self, name: NodeName) -> int | None:
        """Return a node's row, or None where the node has no cards."""
        return self._rows.get(name)

    def name(self, place: int) -> NodeName:
        """Return the name of a row's node."""
        return self._names[place]

    def places(self, names: Sequence[NodeName]) -> Places:
        """Return the row of each node named; -1 for a node that has none."""
        return np.fromiter(map(self._rows.get, names, itertools.repeat(-1)), np.intp, len(names))

    def room(self, places: Places) -> NodeRoom:
        """Return what policies look at: what is free on these rows, as arrays."""
        slices, total, cores, bits = (self.amounts[field][:, places] for field in _ROOM)
        cards = [CardRoom(*amounts) for amounts in zip(slices, total, cores, bits, strict=True)]
        return NodeRoom(self.host[0, places], self.host[1, places], cards)

    def closed(self, places: Places) -> int:
        """Return how many cards of these rows take no new shares, whatever is free on them (`room.takes_shares`)."""
        return int(np.sum(_IS_CLOSED[self.amounts[_CLOSED[0]][:, places]]))

    def cards_of(self, places: Places) -> CardRoom:
        """Return what is free on the cards of these rows, as arrays of the shape (columns, 1, rows)."""
        return CardRoom(*(self.amounts[field][:, None, places] for field in _ROOM))

    def encode(self, names: Sequence[NodeName], places: Places) -> Names:
        """Return the names as JSON; `places` are their rows."""
        encoded = self.encoded[places]
        for position in np.flatnonzero(places < 0).tolist():
            encoded[position] = msgspec.json.encode(names[position])
        return encoded

    def is_usable(self, places: Places, now: float) -> NDArray[np.bool_]:
        """Whether the nodes can be used at all: known, not blocked, and with a fresh Lease."""
        usable: NDArray[np.bool_] = (places >= 0) & _IS_OPEN[self.blocked[places]] & ~self.is_stale(places, now)
        return usable

    def is_stale(self, places: Places, now: float) -> NDArray[np.bool_]:
        """Whether the Lease of each row's device plugin has expired."""
        stale: NDArray[np.bool_] = now - self._renewed[places] > self._duration[places]
        return stale

    def silent(self, now: float) -> list[NodeName]:
        """Return the nodes with cards whose device plugin's Lease has expired, or has no holder."""
        used = len(self._names)
        stale = np.flatnonzero(now - self._renewed[:used] > self._duration[:used])
        return [self._names[place] for place in stale.tolist() if self._names[place]]

    def _put_cards(self, place: int, states: Sequence[CardState]) -> None:
        """Write the fields of each card; the columns of cards that are as they were are left alone."""
        before = self._known.get(place, ())
        if not states or len(before) != len(states):
            self._widen(len(states))
            self.amounts[:, :, place] = 0
            self.amounts[_CLOSED, :, place] = NO_CARD
            before = ()
        for column, (state, known) in enumerate(zip(states, before or (None,) * len(states), strict=True)):
            if state is not known and state != known:
                self.amounts[:, column, place] = rows.card(state, self.models, self._bits)
        self._known[place] = states

    def _place(self, name: NodeName) -> int:
        place = self._rows.get(name)
        if place is None:
            place = self._free.pop() if self._free else len(self._names)
            if place == len(self._names):
                self._names.append(name)
                self._grow(place + 1)
            self._rows[name], self._names[place] = place, name
            self.order[place] = int.from_bytes(rank.fixed_order(name))
            self.encoded[place] = msgspec.json.encode(name)
        return place

    def _touch(self, place: int) -> None:
        self.version += 1
        self.versions[place] = self.version

    def _grow(self, size: int) -> None:
        if size > self.size:
            self._copy(range(self._columns), 2 * self.size)

    def _widen(self, columns: int) -> None:
        if columns > self._columns:
            known, self._columns = range(self._columns), columns
            self._copy(known, self.size)

    def _copy(self, columns: Iterable[int], size: int) -> None:
        """Move everything into arrays of another size."""
        old = {name: getattr(self, name) for name in _ARRAYS}
        kept = list(columns)
        self._allocate(size)
        for name, values in old.items():
            if name == "amounts":
                self.amounts[:, kept, : values.shape[-1]] = values
            else:
                getattr(self, name)[..., : values.shape[-1]] = values


_CLOSED: Final = [FIELDS.index("closed_to_shares"), FIELDS.index("closed_to_wholes")]
_IS_CLOSED: Final = codes.membership(
    (Reason.CARD_CORDONED, Reason.CARD_UNHEALTHY, Reason.CARD_EXCLUSIVE, Reason.CARD_MODE_UNSUPPORTED)
)
_ROOM: Final = [FIELDS.index(name) for name in ("open_slices", "total_slices", "open_cores", "model_bit")]
_ARRAYS: Final = (
    "amounts", "cards", "host", "left", "blocked", "versions", "order", "encoded", "_renewed", "_duration",
)  # fmt: skip
