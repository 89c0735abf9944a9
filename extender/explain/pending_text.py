"""Why a pod waits, in words that its owner can act on: what it needs, and what each card has."""

import heapq
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from extender.index.answer import IndexAnswer
from extender.state.cluster import Cluster
from extender.state.objects import WatchedPod
from vgpu.domain import quantity
from vgpu.domain.asks import request_text, scheduler_words
from vgpu.domain.cards import reasons as reasoning
from vgpu.domain.cards.reasons import Reason
from vgpu.domain.cards.share import CardState
from vgpu.domain.identifiers import NodeName
from vgpu.placement.choose import NodeRefusal

MAX_LENGTH: Final = 900  # an Event's message holds 1,024 characters
MAX_NODES: Final = 40  # more do not fit in it


def why_pending(
    pod: WatchedPod, reasons: Mapping[Reason, int], details: Mapping[NodeName, NodeRefusal], cluster: Cluster
) -> tuple[str, str]:
    """Return the reason code and the message for a pod that no node can take.

    `reasons` counts the nodes by reason; `details` are the refusals of `MAX_NODES` of them, or of all. Of these, the
    nodes with the reason that is returned come first in the message. Of what kube-scheduler refuses by itself, its own
    words come first.
    """
    if pod.parsed.problems:
        return "InvalidRequest", "; ".join(map(str, pod.parsed.problems))
    code = reasoning.ordered(reasons)[0][0]
    request = pod.parsed.request
    parts = scheduler_words.quoted(pod.scheduler_message) if code in reasoning.FOREIGN else []
    parts += [request_text.needs(request)] if request else []
    before = len(parts)
    for node in sorted(details, key=lambda name: (details[name].reason is not code, name)):
        part = f"{node}: {', '.join(_node(node, details[node], cluster))}"
        if len("; ".join([*parts, part])) > MAX_LENGTH:
            break
        parts.append(part)
    if len(parts) - before < sum(reasons.values()):
        parts.append("and more nodes")
    return str(code), "; ".join(parts)


def first(answer: IndexAnswer) -> list[NodeName]:
    """Return the nodes whose refusals a message may have: those with the first reason, then the others, by name."""
    code = reasoning.ordered(answer.reasons)[0][0]
    preferred = heapq.nsmallest(MAX_NODES, answer.refused_for((code,)))
    return preferred if len(preferred) == MAX_NODES else [*preferred, *_others(answer.names, preferred)]


def _others(names: Sequence[NodeName], preferred: Sequence[NodeName]) -> list[NodeName]:
    known = set(preferred)
    return heapq.nsmallest(MAX_NODES - len(preferred), (name for name in names if name not in known))


def _node(node: NodeName, refusal: NodeRefusal, cluster: Cluster) -> Iterator[str]:
    if not refusal.cards or node not in cluster.objects.gpunodes:  # a node may be deleted while others are judged
        yield reasoning.text(refusal.reason)
        return
    for state in cluster.states.of(node).cards:
        why = refusal.cards.get(state.card.uuid)
        yield f"card {state.card.index} {why or 'fits'} ({_left(state)})"


def _left(state: CardState) -> str:
    if not state.card.healthy:
        return state.card.reason or "unhealthy"
    return f"{quantity.human_mib(state.free_mib)} and {state.free_cores} % of compute free"
