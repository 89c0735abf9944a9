"""Why a pod fits nowhere, or where it fits: every node's and card's reason, the nearest fit, and what would help.

Pure functions of node views. `_lack_size` orders the cards that could take a container if other pods ended: the nearest
fit is the node whose lacking cards lack the least.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from vgpu.domain import quantity
from vgpu.domain.asks import node_rules
from vgpu.domain.asks.host_request import NOTHING, HostRequest
from vgpu.domain.asks.node_rules import NodeRuleRefusal, NodeRules
from vgpu.domain.asks.policy import PackingPolicy
from vgpu.domain.asks.request import ContainerRequest, PodRequest
from vgpu.domain.cards import reasons
from vgpu.domain.cards.device import EXCLUSIVE_PROCESS
from vgpu.domain.cards.reasons import Reason
from vgpu.domain.cards.share import CardState
from vgpu.domain.grants.assignment import Assignment
from vgpu.domain.identifiers import CardUuid, NodeName
from vgpu.domain.quantity import FULL_CORES
from vgpu.placement import job_sets
from vgpu.placement.advice import pod_advice
from vgpu.placement.advice.trial import Advice
from vgpu.placement.choose import NodeRefusal
from vgpu.placement.snapshot import NodeView

MAX_JOBS: Final = 4  # with which a job overlaps that are named


@dataclass(frozen=True, slots=True)
class CardVerdict:
    """One card: what is free of it, and why the pod cannot use it (None: it could, beside the pod's other cards)."""

    uuid: CardUuid
    index: int
    model: str
    memory_mib: int
    free_mib: int
    free_cores: int
    reason: Reason | None
    detail: str


@dataclass(frozen=True, slots=True)
class NodeVerdict:
    """One node: the assignment that the pod would get, or the reason why it gets none, with every card's."""

    node: NodeName
    reason: Reason | None
    detail: str
    assignment: Assignment | None
    cards: tuple[CardVerdict, ...] = ()


@dataclass(frozen=True, slots=True)
class NearestFit:
    """The node that lacks the least: its cards that lack something, by UUID, and what they lack together."""

    node: NodeName
    cards: tuple[CardUuid, ...]
    lacking_mib: int
    lacking_cores: int
    detail: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """The verdicts on all nodes, those that fit first; counts by reason; the nearest fit where no node fits."""

    nodes: tuple[NodeVerdict, ...]
    counts: Mapping[Reason, int] = field(default_factory=dict)
    nearest: NearestFit | None = None
    advice: tuple[Advice, ...] = ()

    @property
    def fitting(self) -> list[NodeName]:
        """The nodes that can take the pod now."""
        return [node.node for node in self.nodes if node.assignment is not None]


def explain(
    request: PodRequest,
    views: Iterable[NodeView],
    policy: PackingPolicy,
    *,
    host: HostRequest = NOTHING,
    rules: NodeRules = node_rules.ANY_NODE,
    overrides: Mapping[NodeName, NodeRefusal] | None = None,
    elsewhere: NodeRuleRefusal | None = None,
    pause: Callable[[], None] = lambda: None,
) -> Explanation:
    """Explain one request on all nodes.

    `host` is what the pod requests of a node's CPU and memory, `rules` which nodes it may be on. `overrides` are
    refusals that do not follow from the views, by node: cards reserved for other pods. `elsewhere` is why the pod does
    not start although it has room by itself: its gang has not, or kube-scheduler refuses it for something that no view
    shows. `pause` is called after each node; it may raise to end the work.
    """
    seen, verdicts = list(views), []
    for view in seen:
        verdict = _by_rules(view, rules) or _by_cards(view, request, policy, host, overrides or {})
        verdicts.append(verdict if verdict.assignment is None or elsewhere is None else _held_back(verdict, elsewhere))
        pause()
    verdicts.sort(key=lambda verdict: (verdict.assignment is None, verdict.node))
    if any(verdict.assignment is not None for verdict in verdicts):
        return Explanation(tuple(verdicts), _counts(verdicts))
    if elsewhere is not None and any(verdict.reason is elsewhere.reason for verdict in verdicts):
        return Explanation(tuple(verdicts), _counts(verdicts))
    kept = {verdict.node: verdict.reason for verdict in verdicts if _is_overridden(verdict, overrides or {})}
    possible = [_without_kept(view.for_pod(host, rules), kept.get(view.name)) for view in seen]
    refused = [view for view in seen if rules.refusal(view.name, view.marks) is not None]
    by_rules = pod_advice.of_rules(request, refused, policy, host, rules)
    helpful = (*by_rules, *pod_advice.advise(request, possible, policy, pause))
    return Explanation(tuple(verdicts), _counts(verdicts), nearest(request, possible), helpful)


def _is_overridden(verdict: NodeVerdict, overrides: Mapping[NodeName, NodeRefusal]) -> bool:
    return verdict.node in overrides and verdict.reason is overrides[verdict.node].reason


def _without_kept(view: NodeView, kept: Reason | None) -> NodeView:
    """Return a node for advice: what has room, but not for this pod, lacks nothing that a change would give it."""
    return replace(view, blocked=kept) if kept is not None else view


def nearest(request: PodRequest, views: Iterable[NodeView]) -> NearestFit | None:
    """Return the nearest fit of all nodes; None where ended pods would help on no node."""
    return min((near for view in views if (near := nearest_on(view, request))), key=_distance, default=None)


def nearest_on(view: NodeView, request: PodRequest) -> NearestFit | None:
    """Return what a node lacks for the container that asks for most; None where ended pods would not help."""
    if view.blocked is not None:
        return None
    asked = largest(request)
    lacking = sorted((lack for card in view.state.cards if (lack := _lack(card, request, asked))), key=_lack_size)
    if len(lacking) < asked.gpus:
        return None
    short = [lack for lack in lacking[: asked.gpus] if lack.mib or lack.cores]
    if not short:
        return None
    detail = "; ".join(_lack_text(lack, asked) for lack in short)
    uuids = tuple(lack.card.card.uuid for lack in short)
    return NearestFit(view.name, uuids, sum(lack.mib for lack in short), sum(lack.cores for lack in short), detail)


def largest(request: PodRequest) -> ContainerRequest:
    """Return the container that asks for most: whole cards before memory before time."""
    return max(request.choosers, key=lambda c: (c.whole, c.memory_mib, c.cores or 0, c.gpus))


@dataclass(frozen=True, slots=True)
class _Lack:
    """What a card lacks for a container: MiB and percent of time."""

    card: CardState
    mib: int
    cores: int


def _lack(state: CardState, request: PodRequest, asked: ContainerRequest) -> _Lack | None:
    """Return what a card lacks; None where something else than its tenants rules it out."""
    card = state.card
    selector = request.options.selector
    is_refused = selector.refusal(card) or selector.neighbour_refusal(card)
    lasting = is_refused or not card.healthy or card.cordoned or not pod_advice.allows(card, asked)
    if lasting or asked.memory_mib > card.memory_mib:
        return None
    memory = card.memory_mib if asked.whole else asked.memory_mib
    cores = FULL_CORES if asked.whole else request.counted_cores(asked)
    return _Lack(state, max(0, memory - state.free_mib), max(0, cores - state.free_cores))


def _lack_size(lack: _Lack) -> tuple[float, int]:
    return lack.mib / max(1, lack.card.card.memory_mib) + lack.cores / FULL_CORES, lack.card.card.index


def _distance(near: NearestFit) -> tuple[int, int, int, str]:
    return len(near.cards), near.lacking_mib, near.lacking_cores, near.node


def _lack_text(lack: _Lack, asked: ContainerRequest) -> str:
    parts = []
    if lack.mib:
        wanted = "the whole card is asked for" if asked.whole else f"{quantity.human_mib(asked.memory_mib)} asked for"
        parts.append(
            f"{quantity.human_mib(lack.mib)} of memory ({quantity.human_mib(lack.card.free_mib)} free, {wanted})"
        )
    if lack.cores:
        parts.append(f"{lack.cores} % of compute ({lack.card.free_cores} % free)")
    return f"card {lack.card.card.index} lacks {' and '.join(parts)}"


def _by_rules(view: NodeView, rules: NodeRules) -> NodeVerdict | None:
    """Return the verdict on a node that the pod may not be on: kube-scheduler looks at no card of it."""
    refused = rules.refusal(view.name, view.marks)
    if refused is None:
        return None
    detail = f"{reasons.WORDS[refused.reason]}; {refused.detail}"
    return NodeVerdict(view.name, refused.reason, detail, None, tuple(_card(card, None) for card in view.state.cards))


def _by_cards(
    view: NodeView,
    request: PodRequest,
    policy: PackingPolicy,
    host: HostRequest,
    overrides: Mapping[NodeName, NodeRefusal],
) -> NodeVerdict:
    placement = view.place(request, policy, host)
    if isinstance(placement, Assignment):
        placement = overrides.get(view.name, placement)
    return _verdict(view, request, placement)


def _held_back(verdict: NodeVerdict, elsewhere: NodeRuleRefusal) -> NodeVerdict:
    return replace(verdict, assignment=None, reason=elsewhere.reason, detail=elsewhere.detail)


def _verdict(view: NodeView, request: PodRequest, placement: Assignment | NodeRefusal) -> NodeVerdict:
    if isinstance(placement, Assignment):
        cards = tuple(_card(card, None) for card in view.state.cards)
        return NodeVerdict(view.name, None, _overlap(view, placement), placement, cards)
    cards = tuple(_card(card, placement.cards.get(card.card.uuid)) for card in view.state.cards)
    needed = f"; needs {largest(request).gpus} cards at once" if largest(request).gpus > 1 else ""
    return NodeVerdict(view.name, placement.reason, reasons.WORDS[placement.reason] + needed, None, cards)


def _overlap(view: NodeView, placement: Assignment) -> str:
    """Say that the pod's cards are in part those of other jobs; empty where they are not."""
    if not job_sets.overlapped(placement, view.state.jobs):
        return ""
    indexes = {card.card.uuid: card.card.index for card in view.state.cards}
    sets = [cards for cards in job_sets.of_assignment(placement) if job_sets.overlaps(cards, view.state.jobs)]
    others = dict.fromkeys(job for cards in sets for job in job_sets.overlaps(cards, view.state.jobs))
    own, of_others = ([_set(cards, indexes) for cards in found] for found in (sets, others))
    return (
        f"the cards {', '.join(own)} are in part those of other jobs ({', '.join(of_others[:MAX_JOBS])}): they exclude "
        "each other, and the guarantees of all shrink in proportion; no equal or separate cards are free"
    )


def _set(cards: frozenset[CardUuid], indexes: Mapping[CardUuid, int]) -> str:
    return "{" + ",".join(map(str, sorted(indexes.get(card, -1) for card in cards))) + "}"


def _card(state: CardState, reason: Reason | None) -> CardVerdict:
    card = state.card
    detail = card.reason if reason is Reason.CARD_UNHEALTHY and card.reason else ""
    if reason is Reason.CARD_EXCLUSIVE and card.exclusive_process:
        detail = EXCLUSIVE_PROCESS
    return CardVerdict(
        uuid=card.uuid,
        index=card.index,
        model=card.model,
        memory_mib=card.memory_mib,
        free_mib=state.free_mib,
        free_cores=state.free_cores,
        reason=reason,
        detail=detail,
    )


def _counts(verdicts: Sequence[NodeVerdict]) -> dict[Reason, int]:
    found: dict[Reason, int] = {}
    for verdict in verdicts:
        if verdict.reason is not None:
            found[verdict.reason] = found.get(verdict.reason, 0) + 1
    return dict(reasons.ordered(found))
