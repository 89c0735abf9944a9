"""What would help a pod that fits nowhere. Advice that names a node was tried: with the change the pod is placed there.

Each rule changes the request, or one property of the cards, and places the pod again. Advice without a node is what the
pod needs in any case, such as a model that exists: its text says what is not free now.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from vgpu.domain import names, quantity
from vgpu.domain.asks.host_request import HostRequest
from vgpu.domain.asks.node_rules import NodeRuleRefusal, NodeRules
from vgpu.domain.asks.policy import PackingPolicy
from vgpu.domain.asks.request import ContainerRequest, PodRequest
from vgpu.domain.cards.device import Card, CardMode
from vgpu.domain.cards.reasons import Reason
from vgpu.domain.cards.share import CardState
from vgpu.domain.grants.assignment import Assignment
from vgpu.placement.advice import count_advice, selector_advice
from vgpu.placement.advice.trial import MAX_TRIED, Advice, Pause, tried, with_container
from vgpu.placement.snapshot import NodeView


def advise(request: PodRequest, views: Sequence[NodeView], policy: PackingPolicy, pause: Pause) -> tuple[Advice, ...]:
    """Return what would help, changes of the request first."""
    rules = (
        _smaller, _less_time, count_advice.fewer_cards, selector_advice.other_cards, selector_advice.other_neighbours,
        selector_advice.without_space, _uncordoned, _repaired, _shared, _for_several_processes, _registered,
        count_advice.several_cards,
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
        if isinstance(view.place(with_container(request, replace(asked, memory_mib=size)), policy), Assignment):
            total = f" ({names.GPU_MEM}: {size * asked.gpus})"
            return Advice("ask-for-less-memory", f"ask for {quantity.human_mib(size)} or less{total}", view.name)
    return None


def _less_time(request: PodRequest, views: Sequence[NodeView], policy: PackingPolicy, pause: Pause) -> Advice | None:
    (asked, *more) = request.containers
    if more or not asked.cores or asked.whole:
        return None
    without = with_container(request, replace(asked, cores=None))
    for view in tried(views, pause):
        if isinstance(view.place(without, policy), Assignment):
            free = [card.free_cores for card in view.state.cards if card.free_mib >= asked.memory_mib]
            least = sorted(free, reverse=True)[: asked.gpus][-1] if len(free) >= asked.gpus else 0
            text = f"ask for {least * asked.gpus} % of time or less" if least else "ask for no guaranteed time"
            return Advice("ask-for-less-time", f"{text} ({names.GPU_CORES})", view.name)
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
    for view in tried([node for node in views if node.blocked is Reason.PLUGIN_AWAY], pause):
        usable = replace(view, blocked=None, allocatable=dict.fromkeys(names.KUBELET_RESOURCES, 1 << 40))
        if isinstance(usable.place(request, policy), Assignment):
            text = f"start the device plugin of {view.name}: kubectl -n {names.NAMESPACE} get pods -o wide"
            return Advice("start-device-plugin", text, view.name, by="administrator")
    return None


def _with_cards_changed(
    request: PodRequest,
    views: Sequence[NodeView],
    policy: PackingPolicy,
    pause: Pause,
    said: Advice,
    change: Callable[[Card], Card],
) -> Advice | None:
    """Try each node with all its cards changed; name those cards that differ and that the pod would get."""
    for view in tried([node for node in views if node.blocked is None], pause):
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
