"""Explanations and simulations as JSON documents, which the admin REST answers and the command line prints."""

from collections.abc import Mapping, Sequence

from vgpu.domain.asks import request_text
from vgpu.domain.asks.request import ContainerRequest, PodRequest
from vgpu.domain.cards import reasons
from vgpu.domain.cards.reasons import Reason
from vgpu.domain.grants.assignment import Assignment
from vgpu.domain.identifiers import CardUuid, NodeName
from vgpu.domain.json_types import JsonObject
from vgpu.domain.quantity import FULL_CORES
from vgpu.placement.advice.trial import Advice
from vgpu.placement.demand import Demand
from vgpu.placement.explain import CardVerdict, Explanation, NearestFit, NodeVerdict
from vgpu.placement.packed import Packed
from vgpu.placement.simulation.simulate import Landing
from vgpu.placement.snapshot import NodeView

Views = Mapping[NodeName, NodeView]


def explanation(found: Explanation, views: Views, most: int) -> JsonObject:
    """Write an explanation: the nodes that fit first, then the nearest fit, then the others by name."""
    near = found.nearest.node if found.nearest else ""
    nodes = sorted(found.nodes, key=lambda verdict: (verdict.assignment is None, verdict.node != near, verdict.node))
    return {
        "fits": bool(found.fitting),
        "nodesThatFit": len(found.fitting),
        "reasons": counts(found.counts),
        "nearest": _nearest(found.nearest, views),
        "advice": advised(found.advice),
        "nodes": [_node(node, views) for node in nodes[:most]],
        "nodesLeftOut": max(0, len(nodes) - most),
    }


def advised(found: Sequence[Advice]) -> list[JsonObject]:
    """Write advice."""
    return [
        {"code": advice.code, "text": advice.text, "node": advice.node, "gpus": list(advice.cards), "by": advice.by}
        for advice in found
    ]


def packed(found: Packed, demand: Demand) -> JsonObject:
    """Write how well cards are packed; no part is fragmented or not before pods were seen."""
    knows = any(typical.ask.gpus for typical in demand.typical)
    return {
        "gpus": found.cards,
        "emptyGpus": found.empty,
        "allocatedPercent": round(found.allocated_percent, 2),
        "fragmentedPercent": round(found.fragmented_percent, 2) if knows else None,
    }


def landing(found: Landing, views: Views) -> JsonObject:
    """Write where a pod would be placed."""
    return {
        "node": found.node,
        "gpus": _grants(found.node, found.assignment, views),
        "reasons": [] if found.node else counts(found.counts),
        "nearest": _nearest(found.nearest, views),
        "gang": {"name": found.gang.name, "size": found.gang.size, "fit": found.gang.fit} if found.gang else None,
    }


def unplaceable(namespace: str, name: str, number: int, problems: Sequence[str]) -> JsonObject:
    """Write a pod of a simulation whose manifest is wrong."""
    return {
        "namespace": namespace, "name": name, "number": number, "requested": "", "node": "", "gpus": [],
        "reasons": counts({Reason.INVALID_REQUEST: 1}), "nearest": None, "gang": None, "advice": [],
        "problems": list(problems),
    }  # fmt: skip


def asked(request: PodRequest) -> str:
    """Say what a pod asks for: `8 GiB, 30 %`, `3 x 6 GiB, 80 %`, `1 whole card`."""
    return "; ".join(dict.fromkeys(map(_asked, request.containers)))


def _asked(container: ContainerRequest) -> str:
    if container.whole:
        return f"{container.gpus} whole card{'s' if container.gpus > 1 else ''}"
    times = f"{container.gpus} x " if container.gpus > 1 else ""
    cores = "" if container.cores is None else f", {container.cores} %"
    return f"{times}{request_text.memory(container)}{cores}"


def counts(found: Mapping[Reason, int]) -> list[JsonObject]:
    """Write how many nodes refuse by each reason, in the order in which people need them."""
    return [
        {"reason": str(reason), "text": reasons.WORDS[reason], "nodes": count}
        for reason, count in reasons.ordered(found)
    ]


def _nearest(near: NearestFit | None, views: Views) -> JsonObject | None:
    if near is None:
        return None
    return {
        "node": near.node,
        "gpus": [{"uuid": uuid, "index": _index(near.node, uuid, views)} for uuid in near.cards],
        "lackingMiB": near.lacking_mib,
        "lackingCores": near.lacking_cores,
        "detail": near.detail,
    }


def _node(verdict: NodeVerdict, views: Views) -> JsonObject:
    return {
        "node": verdict.node,
        "fits": verdict.assignment is not None,
        "reason": str(verdict.reason or ""),
        "detail": verdict.detail,
        "gpus": _grants(verdict.node, verdict.assignment, views),
        "cards": [_card(card) for card in verdict.cards],
    }


def _card(verdict: CardVerdict) -> JsonObject:
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


def _grants(node: NodeName, assignment: Assignment | None, views: Views) -> list[JsonObject]:
    if assignment is None:
        return []
    return [
        {
            "container": container,
            "uuid": grant.gpu,
            "index": _index(node, grant.gpu, views),
            "memoryMiB": grant.memory_mib,
            "cores": FULL_CORES if grant.whole else grant.cores or 0,
            "whole": grant.whole,
        }
        for container, grants in assignment.containers.items()
        for grant in grants
    ]


def _index(node: NodeName, uuid: CardUuid, views: Views) -> int:
    cards = views[node].state.cards if node in views else ()
    return next((card.card.index for card in cards if card.card.uuid == uuid), -1)
