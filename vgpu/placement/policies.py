"""The table of packing policies: each row says which card and which node comes first."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from vgpu.domain.asks.host_request import NOTHING, HostRequest
from vgpu.domain.asks.policy import PackingPolicy, PodOptions
from vgpu.domain.asks.request import PodRequest
from vgpu.domain.cards.links import LinkWeights
from vgpu.domain.cards.share import CardState, NodeState
from vgpu.placement import demand, room
from vgpu.placement.costs import fgd, fragmentation, power, topology
from vgpu.placement.demand import Demand
from vgpu.placement.models import Models
from vgpu.placement.question import Question
from vgpu.placement.room import Ints, NodeRoom
from vgpu.placement.weights import Weights

CardSet = Callable[[Sequence[CardState], int, LinkWeights], list[CardState]]


@dataclass(frozen=True, slots=True)
class Policy:
    """One policy.

    Attributes:
        card: sort key of a card; `choose` breaks ties by the most free time, then by NVML's index.
        node: cost of a node that has room for the pod, from ints or from arrays over nodes.
        tolerance: nodes whose costs are above the least cost by at most this are equal; `rank` orders equal nodes. It
            may depend on the weights.
        card_set: chooses the cards of a container together, instead of one after the other.
        set_goodness: what `card_set` makes as large as possible.
        node_state: cost of a node that arrays cannot give, added to that of `node`.
    """

    card: Callable[[CardState], int]
    node: Callable[[NodeRoom, Question], Ints]
    tolerance: Callable[[Weights], int] = lambda _: 0
    card_set: CardSet | None = None
    set_goodness: Callable[[Sequence[CardState], LinkWeights], int] | None = None
    node_state: Callable[[NodeState, Question], int] | None = None

    def cost(self, state: NodeState, free: NodeRoom, question: Question) -> int:
        """Return the cost of one node; `free` is what is free on it."""
        cost = int(self.node(free, question))
        return cost + self.node_state(state, question) if self.node_state else cost


@dataclass(frozen=True, slots=True)
class DefaultPolicies:
    """The cluster's packing policies, for pods that name none, and what the cluster has learned from the pods seen."""

    node_policy: PackingPolicy = PackingPolicy.FRAGMENTATION
    gpu_policy: PackingPolicy = PackingPolicy.FRAGMENTATION
    demand: Demand = demand.EMPTY
    models: Models = field(default_factory=Models)

    def node_policy_for(self, options: PodOptions) -> PackingPolicy:
        """Return the policy that chooses a pod's node."""
        return self.node_policy if options.node_policy is None else options.node_policy

    def gpu_policy_for(self, options: PodOptions) -> PackingPolicy:
        """Return the policy that chooses a pod's cards."""
        return self.gpu_policy if options.gpu_policy is None else options.gpu_policy

    def question(self, request: PodRequest, slice_mib: int, host: HostRequest = NOTHING) -> Question:
        """Return the question which node is best for a pod that requests `host` of the node's CPU and memory."""
        ask = room.ask_of(request, host.cpu_milli, host.memory_mib, slice_mib, self.models)
        return Question(ask, self.demand, self.models)


def _free(node: NodeRoom, question: Question) -> Ints:  # noqa: ARG001 - a row of the table
    return sum(card.free_slices for card in node.cards)


def _taken(node: NodeRoom, question: Question) -> Ints:
    return -_free(node, question)


def _tightest(card: CardState) -> int:
    return card.free_slices


POLICIES: Final[Mapping[PackingPolicy, Policy]] = {
    PackingPolicy.BINPACK: Policy(card=_tightest, node=_free),
    PackingPolicy.SPREAD: Policy(card=lambda card: -card.free_slices, node=_taken),
    PackingPolicy.FRAGMENTATION: Policy(_tightest, fragmentation.cost, tolerance=fragmentation.tolerance),
    PackingPolicy.FGD: Policy(_tightest, fgd.cost),
    PackingPolicy.TOPOLOGY: Policy(
        _tightest,
        _free,
        card_set=topology.best_cards,
        set_goodness=topology.goodness,
        node_state=topology.node_cost,
    ),
    PackingPolicy.POWER: Policy(power.card_order, power.cost),
}
