"""What would help a pod that fits nowhere. Every piece of advice was tried: with the change the pod is placed.

Each rule changes the request, or one property of the cards, and places the pod again. At most `MAX_TRIED` nodes are
tried for each rule, so that the work has a bound.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from vgpu.domain import names, quantity
from vgpu.domain.asks.host_request import HostRequest
from vgpu.domain.asks.node_rules import NodeRuleRefusal, NodeRules
from vgpu.domain.asks.policy import PackingPolicy
from vgpu.domain.asks.request import ContainerRequest, PodRequest
from vgpu.domain.cards.device import Card, CardMode
from vgpu.domain.cards.reasons import Reason
from vgpu.domain.cards.share import CardState
from vgpu.domain.grants.assignment import Assignment
from vgpu.domain.identifiers import NO_NODE, CardUuid, NodeName
from vgpu.placement.snapshot import NodeView

MAX_TRIED: Final = 50  # nodes for each rule
MAX_CARDS: Final = 16  # over which the advice is to spread a container

Pause = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Advice:
    """One change after which the pod would be placed.

    Attributes:
        code: of the change.
        text: what to do.
        node: where the pod would be placed then.
        cards: UUIDs of the cards to change; empty where the pod or the node is to be changed.
        by: whether the pod's owner or an administrator can do it.
    """

    code: str
    text: str
    node: NodeName = NO_NODE
    cards: tuple[CardUuid, ...] = ()
    by: str = "owner"


def advise(request: PodRequest, views: Sequence[NodeView], policy: PackingPolicy, pause: Pause) -> tuple[Advice, ...]:
    """Return what would help, changes of the request first."""
    rules = (
        _smaller, _less_time, _other_cards, _uncordoned, _repaired, _shared, _for_several_processes, _registered,
        _several_cards,
    )  # fmt: skip
    found = (rule(request, views, policy, pause) for rule in rules)
    return tuple(advice for advice in found if advice is not None)


def of_rules(
    request: PodRequest, refused: Sequence[NodeView], policy: PackingPolicy, host: HostRequest, rules: NodeRules
) -> tuple[Advice, ...]:
    """Return what would open the nodes that a pod's rules refuse: one piece for each reason, where the pod has room."""
    found: dict[Reason, Advice] = {}
    for view in refused[:MAX_TRIED]:
        why = rules.refusal(view.name, view.marks)
        is_new = why is not None and why.reason not in found
        if why is not None and is_new and isinstance(view.place(request, policy, host), Assignment):
            found[why.reason] = _opened(view, why, rules)
    return tuple(found.values())


def _opened(view: NodeView, why: NodeRuleRefusal, rules: NodeRules) -> Advice:
    match why.reason:
        case Reason.NODE_UNSCHEDULABLE:
            return Advice("uncordon-node", f"kubectl uncordon {view.name}", view.name, by="administrator")
        case Reason.NODE_TAINTED:
            return Advice("tolerate-taints", f"tolerate the taints of {view.name} ({why.detail})", view.name)
    left = replace(rules, selector=(), terms=None).refusal(view.name, view.marks)
    more = f", and tolerate its taints ({left.detail})" if left and left.reason is Reason.NODE_TAINTED else ""
    return Advice("accept-other-nodes", f"let nodeSelector and node affinity include {view.name}{more}", view.name)


def allows(card: Card, asked: ContainerRequest) -> bool:
    """Whether the mode of a card allows what a container asks for."""
    return card.mode is CardMode.SHARED or (card.mode is CardMode.EXCLUSIVE and asked.whole)


def _smaller(request: PodRequest, views: Sequence[NodeView], policy: PackingPolicy, pause: Pause) -> Advice | None:
    """Find the most memory of each card with which the pod fits, for a pod of one container."""
    (asked, *more) = request.containers
    if more or asked.whole:
        return None
    sizes = [(size, view) for view in views if (size := _free_on(view, request, asked)) and size < asked.memory_mib]
    for size, view in sorted(sizes, key=lambda sized: (-sized[0], sized[1].name))[:MAX_TRIED]:
        pause()
        if isinstance(view.place(_with(request, replace(asked, memory_mib=size)), policy), Assignment):
            total = f" ({names.GPU_MEM}: {size * asked.gpus})"
            return Advice("ask-for-less-memory", f"ask for {quantity.human_mib(size)} or less{total}", view.name)
    return None


def _less_time(request: PodRequest, views: Sequence[NodeView], policy: PackingPolicy, pause: Pause) -> Advice | None:
    (asked, *more) = request.containers
    if more or not asked.cores or asked.whole:
        return None
    without = _with(request, replace(asked, cores=None))
    for view in _tried(views, pause):
        if isinstance(view.place(without, policy), Assignment):
            free = [card.free_cores for card in view.state.cards if card.free_mib >= asked.memory_mib]
            least = sorted(free, reverse=True)[: asked.gpus][-1] if len(free) >= asked.gpus else 0
            text = f"ask for {least * asked.gpus} % of time or less" if least else "ask for no guaranteed time"
            return Advice("ask-for-less-time", f"{text} ({names.GPU_CORES})", view.name)
    return None


def _other_cards(request: PodRequest, views: Sequence[NodeView], policy: PackingPolicy, pause: Pause) -> Advice | None:
    selector = request.options.selector
    any_uuid = frozenset[CardUuid]()
    open_selector = replace(selector, use_models=(), avoid_models=(), use_uuids=any_uuid, avoid_uuids=any_uuid)
    if open_selector == selector:
        return None
    open_request = replace(request, options=replace(request.options, selector=open_selector))
    for view in _tried(views, pause):
        if isinstance(view.place(open_request, policy), Assignment):
            text = "remove the annotations that choose cards by model or UUID"
            return Advice("accept-other-cards", text, view.name)
    return None


def _uncordoned(request: PodRequest, views: Sequence[NodeView], policy: PackingPolicy, pause: Pause) -> Advice | None:
    return _with_cards_changed(
        request, views, policy, pause,
        Advice("uncordon", "uncordon {cards} of {node}", by="administrator"),
        lambda card: replace(card, cordoned=False),
    )  # fmt: skip


def _repaired(request: PodRequest, views: Sequence[NodeView], policy: PackingPolicy, pause: Pause) -> Advice | None:
    return _with_cards_changed(
        request, views, policy, pause,
        Advice("repair", "repair {cards} of {node}, which is reported as unhealthy", by="administrator"),
        lambda card: replace(card, healthy=True),
    )  # fmt: skip


def _shared(request: PodRequest, views: Sequence[NodeView], policy: PackingPolicy, pause: Pause) -> Advice | None:
    return _with_cards_changed(
        request, views, policy, pause,
        Advice("share", "set the mode of {cards} of {node} to shared", by="administrator"),
        lambda card: card if card.exclusive_process else replace(card, mode=CardMode.SHARED),
    )  # fmt: skip


def _for_several_processes(
    request: PodRequest, views: Sequence[NodeView], policy: PackingPolicy, pause: Pause
) -> Advice | None:
    text = "let several processes use {cards} of {node}: nvidia-smi -c DEFAULT there"
    return _with_cards_changed(
        request, views, policy, pause,
        Advice("default-compute-mode", text, by="administrator"),
        lambda card: replace(card, mode=CardMode.SHARED) if card.exclusive_process else card,
    )  # fmt: skip


def _registered(request: PodRequest, views: Sequence[NodeView], policy: PackingPolicy, pause: Pause) -> Advice | None:
    for view in _tried([node for node in views if node.blocked is Reason.PLUGIN_AWAY], pause):
        usable = replace(view, blocked=None, allocatable=dict.fromkeys(names.KUBELET_RESOURCES, 1 << 40))
        if isinstance(usable.place(request, policy), Assignment):
            text = f"start the device plugin of {view.name}: kubectl -n {names.NAMESPACE} get pods -o wide"
            return Advice("start-device-plugin", text, view.name, by="administrator")
    return None


def _several_cards(
    request: PodRequest, views: Sequence[NodeView], policy: PackingPolicy, pause: Pause
) -> Advice | None:
    """Find the fewest cards over which a container that asks for more than any card has can be spread."""
    (asked, *more), cards = request.containers, [card.card.memory_mib for view in views for card in view.state.cards]
    if more or asked.whole or asked.memory_mib <= max(cards, default=asked.memory_mib):
        return None
    widest = max(len(view.state.cards) for view in views)
    for gpus in range(asked.gpus + 1, min(widest, MAX_CARDS) + 1):
        spread = _spread(asked, gpus)
        for view in _tried(views, pause) if spread else ():
            if spread and isinstance(view.place(_with(request, spread), policy), Assignment):
                amounts = f"{names.GPU}: {gpus}, {names.GPU_MEM}: {spread.memory_mib * gpus}"
                size = quantity.human_mib(max(cards))
                text = f"the largest card has {size}; spread the memory over cards ({amounts})"
                return Advice("use-several-cards", text, view.name)
    return None


def _spread(asked: ContainerRequest, gpus: int) -> ContainerRequest | None:
    """Return a request on more cards with equal sums; None where its time does not divide evenly."""
    cores = (asked.cores or 0) * asked.gpus
    if cores % gpus:
        return None
    memory_mib = -(-asked.memory_mib * asked.gpus // gpus)
    return replace(asked, gpus=gpus, memory_mib=memory_mib, cores=cores // gpus if asked.cores else asked.cores)


def _with_cards_changed(
    request: PodRequest,
    views: Sequence[NodeView],
    policy: PackingPolicy,
    pause: Pause,
    said: Advice,
    change: Callable[[Card], Card],
) -> Advice | None:
    """Try each node with all its cards changed; name those cards that differ and that the pod would get."""
    for view in _tried([node for node in views if node.blocked is None], pause):
        cards = tuple(_changed(card, change) for card in view.state.cards)
        differing = {new.card.uuid for new, old in zip(cards, view.state.cards, strict=True) if new.card != old.card}
        if not differing:
            continue
        roomy = dict.fromkeys(names.KUBELET_RESOURCES, 1 << 40)  # unhealthy cards are not allocatable
        placed = replace(view, state=replace(view.state, cards=cards), allocatable=roomy).place(request, policy)
        if isinstance(placed, Assignment):
            named = sorted(card.card.index for card in cards if card.card.uuid in differing & placed.gpus())
            words = f"card{'s' if len(named) > 1 else ''} {', '.join(map(str, named))}"
            uuids = tuple(sorted(differing & placed.gpus()))
            return replace(said, text=said.text.format(cards=words, node=view.name), node=view.name, cards=uuids)
    return None


def _changed(state: CardState, change: Callable[[Card], Card]) -> CardState:
    return replace(state, card=change(state.card))


def _free_on(view: NodeView, request: PodRequest, asked: ContainerRequest) -> int:
    """Return the MiB that the cards of a node with the most free memory have each, for the cards asked for."""
    if view.blocked is not None:
        return 0
    cores, selector = request.counted_cores(asked), request.options.selector
    free = sorted(
        (
            card.free_mib
            for card in view.state.cards
            if selector.refusal(card.card) is None and selector.neighbour_refusal(card.card) is None
            and card.card.healthy and not card.card.cordoned
            and allows(card.card, asked) and card.free_cores >= cores
        ),
        reverse=True,
    )  # fmt: skip
    return free[asked.gpus - 1] if len(free) >= asked.gpus else 0


def _with(request: PodRequest, container: ContainerRequest) -> PodRequest:
    return PodRequest((container,), request.options)


def _tried(views: Sequence[NodeView], pause: Pause) -> Iterator[NodeView]:
    for view in views[:MAX_TRIED]:
        pause()
        yield view
