"""Which pods the cluster gets, and which node is best for one of them: what `fragmentation` and `fgd` learn.

Every new pod that asks for GPUs is counted once, when a watch shows it. Prices are made again after `REFRESH`
questions, and while there are few pods each time that their number has doubled. What is known of a node is valid for
the very `NodeState` that it was computed from.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final

from extender.objects import Pod
from vgpu.placement import demand, fragmentation, rank, room, topology
from vgpu.placement.demand import EMPTY, REFRESH, Demand, TypicalPods
from vgpu.placement.fragmentation import Change
from vgpu.placement.models import Models
from vgpu.placement.policies import POLICIES, DefaultPolicies
from vgpu.placement.question import Question
from vgpu.placement.room import Ask, Room
from vgpu.policy import PackingPolicy
from vgpu.share import NodeState

MAX_CHANGES: Final = 100_000  # computed changes that are kept, about 100 MB
MAX_SAMPLE: Final = 512  # nodes that are looked at for prices; of more nodes every n-th


class DemandKeeper:
    """Learns from the pods seen, and ranks nodes. `states` returns the states of all usable nodes."""

    def __init__(self, slice_mib: int, states: Callable[[], Iterable[NodeState]]) -> None:
        self.models = Models()
        self.demand: Demand = EMPTY
        self._slice_mib = slice_mib
        self._states = states
        self._typical = TypicalPods()
        self._questions = 0
        self._seen = 0
        self._priced = 0
        self._rooms: dict[str, tuple[NodeState, Room, dict[Ask, int]]] = {}
        self._changes: OrderedDict[Ask, dict[str, tuple[NodeState, Change]]] = OrderedDict()
        self._asks: tuple[Ask, ...] = ()

    def see(self, pod: Pod) -> None:
        """Count a new pod."""
        if pod.parsed.request is not None:
            self._typical.see(self._ask(pod))
            self._seen += 1

    def question(self, pod: Pod) -> Question:
        """Return the question which node is best for a pod."""
        if self._questions % REFRESH == 0 or self._seen > 2 * self._priced:
            self._refresh()
        self._questions += 1
        return Question(self._ask(pod), self.demand, self.models)

    def policies(self, defaults: DefaultPolicies) -> DefaultPolicies:
        """Return the cluster's policies with what was learned by now."""
        return replace(defaults, demand=self.demand, models=self.models)

    def rank(self, nodes: Sequence[NodeState], policy: PackingPolicy, question: Question) -> list[str]:
        """Return what `rank.rank` returns."""
        cost = self._fragmentation(question) if policy is PackingPolicy.FRAGMENTATION else self._cost(policy, question)
        return rank.by_cost({node.name: cost(node) for node in nodes}, POLICIES[policy].tolerance)

    def _fragmentation(self, question: Question) -> Callable[[NodeState], int]:
        known = self._known(question.ask)
        return lambda node: int(fragmentation.priced(self._change(known, node, question), question.demand))

    def _cost(self, policy: PackingPolicy, question: Question) -> Callable[[NodeState], int]:
        row = POLICIES[policy]
        return lambda node: row.cost(node, self._room(node)[0], question)

    def _ask(self, pod: Pod) -> Ask:
        return room.ask_of(pod.parsed.request, pod.host.cpu_milli, pod.host.memory_mib, self._slice_mib, self.models)

    def _known(self, ask: Ask) -> dict[str, tuple[NodeState, Change]]:
        known = self._changes.setdefault(ask, {})
        self._changes.move_to_end(ask)
        while len(self._changes) > 1 and sum(map(len, self._changes.values())) > MAX_CHANGES:
            self._changes.popitem(last=False)
        return known

    def _change(self, known: dict[str, tuple[NodeState, Change]], state: NodeState, question: Question) -> Change:
        found = known.get(state.name)
        if found is None or found[0] is not state:
            change = fragmentation.change(self._room(state)[0], question.ask, question.demand.asks)
            found = known[state.name] = state, change
        return found[1]

    def _room(self, state: NodeState) -> tuple[Room, dict[Ask, int]]:
        found = self._rooms.get(state.name)
        if found is None or found[0] is not state:
            found = self._rooms[state.name] = state, room.room_of(state, self.models), {}
        return found[1:]

    def _refresh(self) -> None:
        """Make the prices again. Where the typical pods are others, nothing that is known of a node is valid."""
        self._priced = self._seen
        states = list(self._states())
        self._rooms = {each.name: self._rooms[each.name] for each in states if each.name in self._rooms}
        step = -(-len(states) // MAX_SAMPLE) or 1
        sample = [self._room(each) for each in sorted(states, key=lambda state: rank.fixed_order(state.name))[::step]]
        cards = [each for found, _ in sample for each in found.cards]
        slices = sum(each.total_slices for each in cards) // max(1, len(cards))
        free = step * sum(found.share for found, _ in sample)
        self.demand = self._typical.demand(lambda ask: step * _copies(sample, ask), free, max(1, slices))
        if self.demand.asks != self._asks:
            self._asks = self.demand.asks
            self._changes.clear()


def described(defaults: DefaultPolicies) -> str:
    """Return the cluster's policies and their weights in words, for the log."""
    tolerance = fragmentation.TOLERANCE // fragmentation.MILLI_CARD
    return (
        f"nodes by {defaults.node_policy}, cards by {defaults.gpu_policy}; "
        f"fragmentation: costs that differ by at most {tolerance} thousandths of a card are equal, prices by "
        f"room^-{demand.SCARCITY}, made after {REFRESH} questions from at most {demand.MAX_TYPICAL} of "
        f"{demand.MAX_CLASSES} classes, half-life {demand.HALF_LIFE} pods; "
        f"topology: NVLink {topology.NVLINK}, same NUMA node {topology.SAME_NUMA}, other {topology.OTHER_NUMA}"
    )


def _copies(sample: Iterable[tuple[Room, dict[Ask, int]]], ask: Ask) -> int:
    """Return for how many pods of a class some nodes have room, in thousandths."""
    total = 0
    for found, known in sample:
        if ask not in known:
            known[ask] = int(fragmentation.copies(found, ask))
        total += known[ask]
    return total
