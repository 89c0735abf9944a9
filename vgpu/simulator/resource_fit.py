"""kube-scheduler's own filters: taints, labels, and NodeResourcesFit for extended resources."""

from collections import Counter
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Final

from vgpu.domain import quantity
from vgpu.domain.asks import node_rules, request
from vgpu.domain.asks.request import ContainerKind
from vgpu.domain.cards.reasons import Reason
from vgpu.domain.json_types import JsonObject
from vgpu.simulator.api.pods import TERMINAL

_RULES: Final = {
    Reason.NODE_UNSCHEDULABLE: "node(s) were unschedulable",
    Reason.NODE_AFFINITY_MISMATCH: "node(s) didn't match Pod's node affinity/selector",
    Reason.NODE_TAINTED: "node(s) had untolerated taint(s)",
}


def requested(pod: JsonObject) -> dict[str, int]:
    """Return what a pod requests of each extended resource: the larger of its init phase and its app phase."""
    sidecars: Counter[str] = Counter()
    apps: Counter[str] = Counter()
    largest: dict[str, int] = {}
    for _, kind, container in request.containers_of(pod):
        amounts = _extended(container)
        if kind is ContainerKind.INIT:
            for name, amount in amounts.items():
                largest[name] = max(largest.get(name, 0), amount + sidecars[name])
        else:
            (sidecars if kind is ContainerKind.SIDECAR else apps).update(amounts)
    running = sidecars + apps
    return {name: max(running[name], largest.get(name, 0)) for name in sorted(running.keys() | largest.keys())}


def requested_on(pods: Iterable[JsonObject], node: str) -> dict[str, int]:
    """Return what the pods on a node that are not terminal request together."""
    total: Counter[str] = Counter()
    for pod in pods:
        if pod["spec"].get("nodeName") == node and pod["status"]["phase"] not in TERMINAL:
            total.update(requested(pod))
    return dict(total)


def refusal(node: JsonObject, wanted: Mapping[str, int], already: Mapping[str, int], ignored: AbstractSet[str]) -> str:
    """Return why a node is ruled out by what it offers, in kube-scheduler's words; empty where it is not."""
    offered = (node.get("status") or {}).get("allocatable") or {}
    for name, amount in wanted.items():
        free = (quantity.whole_number(offered.get(name, 0)) or 0) - already.get(name, 0)
        if name not in ignored and amount > free:
            return f"Insufficient {name}"
    return ""


def rule_refusal(node: JsonObject, pod: JsonObject) -> str:
    """Return why a pod's rules for nodes rule a node out, in kube-scheduler's words; empty where they do not."""
    rules = node_rules.of_pod(pod["spec"])
    refused = rules.refusal(node["metadata"]["name"], node_rules.of_node(node))
    return _RULES[refused.reason] if refused is not None else ""


def failure_message(refusals: Mapping[str, str]) -> str:
    """Return the message of kube-scheduler's FailedScheduling Event, which counts nodes with equal texts."""
    counted = sorted(f"{count} {text}" for text, count in Counter(refusals.values()).items())
    return f"0/{len(refusals)} nodes are available: {', '.join(counted)}."


def _extended(container: Mapping[str, object]) -> dict[str, int]:
    amounts = {name: quantity.whole_number(text) for name, text in request.amounts(container).items() if "/" in name}
    return {name: amount for name, amount in amounts.items() if amount}
