"""Which pods the cluster gets, and what the room for them is worth: what `fragmentation` and `fgd` learn.

Every new pod that asks for GPUs is counted once, when a watch shows it. Prices are made again after some
questions (`Weights.refresh`), and while there are few pods each time that their number has doubled.
"""

from collections.abc import Callable
from dataclasses import replace

from extender.index.supply import Supply
from extender.state import weights_file
from extender.state.identity_cache import IdentityCache
from extender.state.objects import WatchedPod
from vgpu.domain.asks.request import PodRequest
from vgpu.placement import room
from vgpu.placement.demand import Demand, TypicalPods
from vgpu.placement.models import Models
from vgpu.placement.policies import DefaultPolicies
from vgpu.placement.question import Question
from vgpu.placement.room import PodAsk
from vgpu.placement.weights import DEFAULTS, PolicyWeights, Weights


class DemandKeeper:
    """Learns from the pods seen. `supply` returns the room that all usable nodes have for some classes of pods."""

    def __init__(
        self,
        slice_mib: int,
        models: Models,
        supply: Callable[[tuple[PodAsk, ...]], Supply],
        weights: Weights = DEFAULTS,
    ) -> None:
        self.demand = Demand(weights=weights)
        self._weights = weights
        self._slice_mib = slice_mib
        self._models = models
        self._supply = supply
        self._typical = TypicalPods(weights)
        self._asks = IdentityCache[PodRequest | None, PodAsk](self._made)
        self._questions = 0
        self._seen = 0
        self._priced = 0

    def see(self, pod: WatchedPod) -> None:
        """Count a new pod."""
        if pod.parsed.request is not None:
            self._typical.see(self._ask(pod))
            self._seen += 1

    def question(self, pod: WatchedPod) -> Question:
        """Return the question which node is best for a pod; the index must be up to date."""
        if self._questions % self._weights.refresh == 0 or self._seen > 2 * self._priced:
            self._refresh()
        self._questions += 1
        return self.asked(pod)

    def asked(self, pod: WatchedPod) -> Question:
        """Return the question with the prices as they are."""
        return Question(self._ask(pod), self.demand, self._models)

    def policies(self, defaults: DefaultPolicies) -> DefaultPolicies:
        """Return the cluster's policies with what was learned by now."""
        return replace(defaults, demand=self.demand, models=self._models)

    def _ask(self, pod: WatchedPod) -> PodAsk:
        """Return what a pod asks of a node; of a new model of cards it is not known before whether pods accept it."""
        return self._asks.of(pod.parsed.request, pod.host.cpu_milli, pod.host.memory_mib, self._models.count)

    def _made(self, request: PodRequest | None, cpu_milli: int, memory_mib: int, _models: int) -> PodAsk:
        return room.ask_of(request, cpu_milli, memory_mib, self._slice_mib, self._models)

    def _refresh(self) -> None:
        """Make the prices again."""
        self._priced = self._seen
        supply = self._supply(self._typical.asks())
        self.demand = self._typical.demand(supply.copies.__getitem__, supply.free, supply.slices)


def described(defaults: DefaultPolicies, weights: PolicyWeights) -> str:
    """Return the cluster's policies and their weights in words, for the log."""
    return f"nodes by {defaults.node_policy}, cards by {defaults.gpu_policy}; {weights_file.effective(weights)}"
