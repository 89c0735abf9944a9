"""The questions to the placement process, and its answers: JSON that goes to the client."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from extender.admin.worker.fleet import Fleet
from extender.admin.worker.simulation import Simulation
from vgpu import reasons
from vgpu.assignment import Assignment
from vgpu.placement import explain
from vgpu.placement.choose import Refusal
from vgpu.placement.demand import Demand
from vgpu.placement.explain import CardVerdict, Explanation, NearestFit, NodeVerdict
from vgpu.placement.packed import Packed
from vgpu.placement.policies import DefaultPolicies
from vgpu.placement.simulate import Landing, Wanted
from vgpu.placement.snapshot import NodeView
from vgpu.reasons import Reason

Views = Mapping[str, NodeView]
Pause = Callable[[], None]
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Explain:
    """Why a pod fits nowhere, or where it fits; at most `most` nodes in the answer."""

    pod: Wanted
    defaults: DefaultPolicies
    most: int
    reserved: Mapping[str, Refusal] = field(default_factory=dict)

    def answer(self, fleet: Fleet, pause: Pause) -> Json:
        """Explain."""
        request, views = self.pod.request, fleet.views
        policy = self.defaults.gpu_policy_for(request.options)
        found = explain.explain(
            request, views.values(), policy, host=self.pod.host, overrides=self.reserved, pause=pause
        )
        return explanation_json(found, views, self.most)


@dataclass(frozen=True, slots=True)
class Reasons:
    """How many nodes refuse each pod by which reason, with the nearest fit; equal pods are judged once."""

    pods: Sequence[Wanted]
    defaults: DefaultPolicies

    def answer(self, fleet: Fleet, pause: Pause) -> list[Json]:
        """Judge each pod alone."""
        simulation, known = Simulation(fleet, self.defaults), dict[Wanted, Json]()
        for pod in self.pods:
            if pod not in known:
                pause()
                known[pod] = landing_json(simulation.judge(pod), fleet.views)
        return [known[pod] for pod in self.pods]


@dataclass(frozen=True, slots=True)
class Simulate:
    """Where pods would be placed, one after the other, and how well the cluster is packed before and after."""

    pods: Sequence[Wanted]
    defaults: DefaultPolicies

    def answer(self, fleet: Fleet, pause: Pause) -> Json:
        """Simulate, and take everything back."""
        with fleet.tried():
            before = self._packed(fleet)
            landings = [
                landing_json(each, fleet.views) for each in Simulation(fleet, self.defaults).land(self.pods, pause)
            ]
            return {"pods": landings, "before": before, "after": self._packed(fleet)}

    def _packed(self, fleet: Fleet) -> Json:
        demand = self.defaults.demand
        return packed_json(fleet.choice(self.defaults.models).packed(demand, self.defaults.models), demand)


Question = Explain | Reasons | Simulate


@dataclass(frozen=True, slots=True)
class Answer:
    """JSON, or why there is none; `is_late` where the time was over."""

    body: bytes = b""
    failure: str = ""
    is_late: bool = False


def answer(question: Question, fleet: Fleet, pause: Pause) -> Answer:
    """Answer a question; `pause` raises TimeoutError when the time is over."""
    try:
        return Answer(msgspec.json.encode(question.answer(fleet, pause)))
    except TimeoutError:
        return Answer(is_late=True, failure="the time for the answer is over")


def explanation_json(found: Explanation, views: Views, most: int) -> Json:
    """Write an explanation: the nodes that fit first, then the nearest fit, then the others by name."""
    near = found.nearest.node if found.nearest else ""
    nodes = sorted(found.nodes, key=lambda each: (each.assignment is None, each.node != near, each.node))
    return {
        "fits": bool(found.fitting),
        "nodesThatFit": len(found.fitting),
        "reasons": _counts(found.counts),
        "nearest": _nearest(found.nearest, views),
        "advice": [
            {"code": each.code, "text": each.text, "node": each.node, "gpus": list(each.cards), "by": each.by}
            for each in found.advice
        ],
        "nodes": [_node(each, views) for each in nodes[:most]],
        "nodesLeftOut": max(0, len(nodes) - most),
    }


def packed_json(found: Packed, demand: Demand) -> Json:
    """Write how well cards are packed; no part is fragmented or not before pods were seen."""
    knows = any(each.ask.gpus for each in demand.typical)
    return {
        "gpus": found.cards,
        "emptyGpus": found.empty,
        "allocatedPercent": round(found.allocated_percent, 2),
        "fragmentedPercent": round(found.fragmented_percent, 2) if knows else None,
    }


def landing_json(landing: Landing, views: Views) -> Json:
    """Write where a pod would be placed."""
    return {
        "node": landing.node,
        "gpus": _grants(landing.node, landing.assignment, views),
        "reasons": _counts(landing.counts),
        "nearest": _nearest(landing.nearest, views),
    }


def _counts(counts: Mapping[Reason, int]) -> list[Json]:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [{"reason": str(reason), "text": reasons.WORDS[reason], "nodes": count} for reason, count in ordered]


def _nearest(near: NearestFit | None, views: Views) -> Json | None:
    if near is None:
        return None
    return {
        "node": near.node,
        "gpus": [{"uuid": uuid, "index": _index(near.node, uuid, views)} for uuid in near.cards],
        "lackingMiB": near.lacking_mib,
        "lackingCores": near.lacking_cores,
        "detail": near.detail,
    }


def _node(verdict: NodeVerdict, views: Views) -> Json:
    return {
        "node": verdict.node,
        "fits": verdict.assignment is not None,
        "reason": str(verdict.reason or ""),
        "detail": verdict.detail,
        "gpus": _grants(verdict.node, verdict.assignment, views),
        "cards": [_card(each) for each in verdict.cards],
    }


def _card(verdict: CardVerdict) -> Json:
    text = verdict.detail or (reasons.CARD_WORDS.get(verdict.reason, "") if verdict.reason else "")
    return {
        "uuid": verdict.uuid,
        "index": verdict.index,
        "model": verdict.model,
        "memoryMiB": verdict.memory_mib,
        "freeMiB": verdict.free_mib,
        "freeCores": verdict.free_cores,
        "reason": str(verdict.reason or ""),
        "detail": text,
    }


def _grants(node: str, assignment: Assignment | None, views: Views) -> list[Json]:
    if assignment is None:
        return []
    return [
        {
            "container": container,
            "uuid": grant.gpu,
            "index": _index(node, grant.gpu, views),
            "memoryMiB": grant.memory_mib,
            "cores": 100 if grant.whole else grant.cores or 0,
            "whole": grant.whole,
        }
        for container, grants in assignment.containers.items()
        for grant in grants
    ]


def _index(node: str, uuid: str, views: Views) -> int:
    cards = views[node].state.cards if node in views else ()
    return next((each.card.index for each in cards if each.card.uuid == uuid), -1)
