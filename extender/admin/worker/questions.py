"""The questions to the placement process, and its answers: JSON that goes to the client."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import msgspec

from extender.admin.worker.fleet import Fleet
from extender.admin.worker.simulation import FleetSimulation
from vgpu.domain.asks.node_rules import NodeRuleRefusal
from vgpu.domain.asks.policy import PackingPolicy
from vgpu.domain.cards.reasons import Reason
from vgpu.domain.identifiers import NodeName
from vgpu.domain.json_types import JsonObject
from vgpu.placement import documents, explain
from vgpu.placement.choose import NodeRefusal
from vgpu.placement.policies import DefaultPolicies
from vgpu.placement.simulation.advice import advise
from vgpu.placement.simulation.neighbours import Tenants
from vgpu.placement.simulation.simulate import Landing, Wanted

Pause = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Explain:
    """Why a pod fits nowhere, or where it fits; at most `most` nodes in the answer.

    `elsewhere` is why it does not start on a node that has room for it.
    """

    pod: Wanted
    defaults: DefaultPolicies
    most: int
    elsewhere: NodeRuleRefusal | None = None

    def answer(self, fleet: Fleet, pause: Pause) -> JsonObject:
        """Explain."""
        request, views = self.pod.request, fleet.views
        policy = self.defaults.gpu_policy_for(request.options)
        found = explain.explain(
            request, views.values(), policy,
            host=self.pod.host, rules=self.pod.rules, overrides=self._kept(fleet, policy),
            elsewhere=self.elsewhere, pause=pause,
        )  # fmt: skip
        return documents.explanation(found, views, self.most)

    def _kept(self, fleet: Fleet, policy: PackingPolicy) -> dict[NodeName, NodeRefusal]:
        """Return the refusals of the nodes on which room is kept free or reserved for other pods."""
        placed = {name: fleet.place(self.pod, name, policy) for name in fleet.kept_from(self.pod)}
        return {name: refusal for name, refusal in placed.items() if isinstance(refusal, NodeRefusal)}


@dataclass(frozen=True, slots=True)
class Reasons:
    """How many nodes refuse each pod by which reason, with the nearest fit; equal pods are judged once.

    `elsewhere` has for each pod the reason why it does not start on nodes that have room for it, or None.
    """

    pods: Sequence[Wanted]
    defaults: DefaultPolicies
    elsewhere: Sequence[Reason | None] = ()

    def answer(self, fleet: Fleet, pause: Pause) -> list[JsonObject]:
        """Judge each pod alone."""
        simulation, known = FleetSimulation(fleet, self.defaults), dict[tuple[Wanted, Reason | None], JsonObject]()
        kinds = list(zip(self.pods, self.elsewhere or [None] * len(self.pods), strict=True))
        for pod, elsewhere in kinds:
            if (pod, elsewhere) not in known:
                pause()
                landing = _held_back(simulation.judge(pod), elsewhere)
                known[pod, elsewhere] = documents.landing(landing, fleet.views)
        return [known[kind] for kind in kinds]


def _held_back(landing: Landing, elsewhere: Reason | None) -> Landing:
    """Return a landing; of a pod that does not start where it has room, those nodes refuse it."""
    if landing.assignment is None or elsewhere is None:
        return landing
    return Landing(counts={**landing.counts, elsewhere: landing.fitting})


@dataclass(frozen=True, slots=True)
class Simulate:
    """Where pods would be placed, one after the other, and how well the cluster is packed before and after.

    `tenants` are the pods on cards, of the namespaces of these pods.
    """

    pods: Sequence[Wanted]
    defaults: DefaultPolicies
    tenants: Tenants = field(default_factory=dict)

    def answer(self, fleet: Fleet, pause: Pause) -> JsonObject:
        """Simulate, and take everything back."""
        with fleet.tried():
            before = self._packed(fleet)
            landed = FleetSimulation(fleet, self.defaults).land(self.pods, pause, self.tenants)
            advice = advise(self.pods, landed, fleet.views.values(), self.defaults, pause)
            landings = [
                {**documents.landing(landing, fleet.views), "advice": documents.advised(helpful)}
                for landing, helpful in zip(landed, advice, strict=True)
            ]
            return {"pods": landings, "before": before, "after": self._packed(fleet)}

    def _packed(self, fleet: Fleet) -> JsonObject:
        demand = self.defaults.demand
        choice = fleet.choice(self.defaults.models)
        return documents.packed(choice.packed(demand, self.defaults.models, fleet.closed()), demand)


Question = Explain | Reasons | Simulate


@dataclass(frozen=True, slots=True)
class WorkerAnswer:
    """JSON, or why there is none; `is_late` where the time was over."""

    body: bytes = b""
    failure: str = ""
    is_late: bool = False


def answer(question: Question, fleet: Fleet, pause: Pause) -> WorkerAnswer:
    """Answer a question; `pause` raises TimeoutError when the time is over."""
    try:
        return WorkerAnswer(msgspec.json.encode(question.answer(fleet, pause)))
    except TimeoutError:
        return WorkerAnswer(is_late=True, failure="the time for the answer is over")
