"""The state of the cluster that decisions look at, with its parts connected.

The watches write by `updates`, `leases` and `demand`; the verbs read, and `bind` and `gangs` write `reservations`.
Everything runs on one event loop, so a check and the reservation after it are one step as long as no code between them
awaits. A change of an object or a reservation invalidates the states of its nodes, and the index is written from those.
"""

from collections.abc import Awaitable, Callable
from typing import Final

from extender.index.copies import Copies
from extender.index.nodes import NodeIndex
from extender.index.ranking import Ranking
from extender.index.supply import Supplies, Supply
from extender.state.beside.card_neighbours import CardNeighbours
from extender.state.card_owners import CardOwners
from extender.state.demand import DemandKeeper
from extender.state.held_room import Holds
from extender.state.leases import Leases
from extender.state.node_rows import NodeRows
from extender.state.node_states import NodeStates
from extender.state.reservations import Reservations
from extender.state.store import ObjectStore
from extender.state.updates import StateUpdates
from vgpu.domain import names
from vgpu.placement.models import Models
from vgpu.placement.room import PodAsk
from vgpu.placement.weights import PolicyWeights

DEFAULT_WEIGHTS: Final = PolicyWeights()


class Cluster:
    """The parts of the state. `clock` is monotonic, in seconds; `weights` are those of the packing policies.

    Attributes:
        objects: what the watches show.
        leases: the Leases of our namespace.
        updates: takes what the watches show.
        reservations: pods whose Binding is in flight.
        owners: which GPUNode each card counts on.
        holds: the room that is kept free for a gang.
        states: what is taken of each node's cards.
        neighbours: what pods ask for now, beside the pods that are bound.
        rows: the index of the nodes.
        ranking: orders nodes.
        demand: what is learned from the pods seen.
    """

    def __init__(self, slice_mib: int, clock: Callable[[], float], weights: PolicyWeights = DEFAULT_WEIGHTS) -> None:
        self.slice_mib = slice_mib
        self.weights = weights
        self.now = clock
        self.objects = ObjectStore()
        self.leases = Leases(clock, self._take_lease)
        self.owners = CardOwners(lambda node: self.leases.life(names.node_lease(node)))
        self.holds = Holds()
        self.reservations = Reservations(self.objects)
        self.neighbours = CardNeighbours(self.reservations.assigned)
        self.states = NodeStates(
            slice_mib, clock, self.objects, self.leases, self.owners, self.reservations, weights.topology
        )
        self.updates = StateUpdates(self.objects, self.owners, self.neighbours, self.reservations, self.states, clock)
        models = Models()
        self.rows = NodeRows(self.states.row, clock, models)
        self.states.listen(self.rows.mark)
        self.states.listen(self.objects.changed_nodes.add)
        self.owners.listen(self.states.invalidate)
        self.reservations.listen(self.states.invalidate)
        room_for = Copies(self.rows.index)
        self.ranking = Ranking(self.rows.index, room_for, self.states.of)
        self._supplies = Supplies(self.rows.index, room_for, self.states.of, models)
        self.demand = DemandKeeper(slice_mib, models, self.supply, weights.fragmentation)

    async def index(self, pause: Callable[[float], Awaitable[None]]) -> NodeIndex:
        """Return every node as arrays, up to date until the next change; long work is done in slices with pauses."""
        self.states.expire()
        return await self.rows.update(pause)

    def supply(self, typical: tuple[PodAsk, ...]) -> Supply:
        """Return the room that all usable nodes have for classes of pods; the index must be up to date."""
        return self._supplies.of(typical, self.now())

    def _take_lease(self, name: str) -> None:
        if node := names.node_of_lease(name):
            self.rows.index.put_lease(node, *self.leases.term(name))
            self.owners.review()  # any renewal shows that time passes: another plugin may have fallen silent
