"""Which pods the cluster gets, and what the room for them is worth: what `fragmentation` and `fgd` learn.

Every new pod that asks for GPUs is counted once, when a watch shows it. Prices are made again after `REFRESH`
questions, and while there are few pods each time that their number has doubled.
"""

from collections.abc import Callable
from dataclasses import replace

from extender.index.supply import Supply
from extender.objects import Pod
from vgpu.placement import demand, fragmentation, room, topology
from vgpu.placement.demand import EMPTY, REFRESH, Demand, TypicalPods
from vgpu.placement.models import Models
from vgpu.placement.policies import DefaultPolicies
from vgpu.placement.question import Question
from vgpu.placement.room import Ask


class DemandKeeper:
    """Learns from the pods seen. `supply` returns the room that all usable nodes have for some classes of pods."""

    def __init__(self, slice_mib: int, models: Models, supply: Callable[[tuple[Ask, ...]], Supply]) -> None:
        self.demand: Demand = EMPTY
        self._slice_mib = slice_mib
        self._models = models
        self._supply = supply
        self._typical = TypicalPods()
        self._questions = 0
        self._seen = 0
        self._priced = 0

    def see(self, pod: Pod) -> None:
        """Count a new pod."""
        if pod.parsed.request is not None:
            self._typical.see(self._ask(pod))
            self._seen += 1

    def question(self, pod: Pod) -> Question:
        """Return the question which node is best for a pod; the index must be up to date."""
        if self._questions % REFRESH == 0 or self._seen > 2 * self._priced:
            self._refresh()
        self._questions += 1
        return self.asked(pod)

    def asked(self, pod: Pod) -> Question:
        """Return the question with the prices as they are."""
        return Question(self._ask(pod), self.demand, self._models)

    def policies(self, defaults: DefaultPolicies) -> DefaultPolicies:
        """Return the cluster's policies with what was learned by now."""
        return replace(defaults, demand=self.demand, models=self._models)

    def _ask(self, pod: Pod) -> Ask:
        return room.ask_of(pod.parsed.request, pod.host.cpu_milli, pod.host.memory_mib, self._slice_mib, self._models)

    def _refresh(self) -> None:
        """Make the prices again."""
        self._priced = self._seen
        supply = self._supply(self._typical.asks())
        self.demand = self._typical.demand(supply.copies.__getitem__, supply.free, supply.slices)


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
