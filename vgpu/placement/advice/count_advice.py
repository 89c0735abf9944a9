"""Advice on how many cards a container asks for: more where none is large enough, fewer where no node has as many."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from vgpu.domain import names, quantity
from vgpu.domain.asks.policy import PackingPolicy
from vgpu.domain.asks.request import ContainerRequest, PodRequest
from vgpu.domain.cards.share import Usage
from vgpu.placement.advice.trial import MAX_TRIED, Advice, Pause, fitting, with_container
from vgpu.placement.snapshot import NodeView

MAX_CARDS: Final = 16  # over which the advice is to spread a container


def several_cards(request: PodRequest, views: Sequence[NodeView], policy: PackingPolicy, pause: Pause) -> Advice | None:
    """Find the fewest cards over which a container that asks for more than any card has can be spread.

    Where no node has them free, the fewest that a node would have if all its pods ended.
    """
    (asked, *more), cards = request.containers, [card.card.memory_mib for view in views for card in view.state.cards]
    if more or asked.whole or asked.memory_mib <= max(cards, default=asked.memory_mib):
        return None
    widest = max(len(view.state.cards) for view in views)
    spreads = [spread for gpus in range(asked.gpus + 1, min(widest, MAX_CARDS) + 1) if (spread := _spread(asked, gpus))]
    size = quantity.human_mib(max(cards))
    for spread in spreads:
        if found := fitting(with_container(request, spread), views, policy, pause):
            text = f"the largest card has {size}; spread the memory over cards ({_memory_over(spread)})"
            return Advice("use-several-cards", text, found.name)
    empty = [_empty(view) for view in views[:MAX_TRIED]]
    for spread in spreads:
        if fitting(with_container(request, spread), empty, policy, pause):
            text = (
                f"the largest card has {size}; spread the memory over {spread.gpus} cards of a node "
                f"({_memory_over(spread)}); no node has {spread.gpus} cards with as much free now"
            )
            return Advice("use-several-cards", text)
    return None


def fewer_cards(request: PodRequest, views: Sequence[NodeView], policy: PackingPolicy, pause: Pause) -> Advice | None:
    """Find the most cards with which a container that asks for more than any node has is placed.

    Where not one is free for it, the most that a node has.
    """
    (asked, *more), widest = request.containers, max((len(view.state.cards) for view in views), default=0)
    if more or not 0 < widest < asked.gpus:
        return None
    several = f"; the largest node has {widest}, and several pods may start together ({names.GANG})"
    for gpus in range(widest, 0, -1):
        fewer = replace(asked, gpus=gpus)
        if found := fitting(with_container(request, fewer), views, policy, pause):
            text = f"ask for {_cards(gpus)} or fewer ({_amounts(fewer)}){several}"
            return Advice("ask-for-fewer-cards", text, found.name)
    text = f"ask for {_cards(widest)} or fewer ({_amounts(replace(asked, gpus=widest))}){several}; none is free now"
    return Advice("ask-for-fewer-cards", text)


def _cards(number: int) -> str:
    return "1 card" if number == 1 else f"{number} cards"


def _memory_over(asked: ContainerRequest) -> str:
    memory = f", {names.GPU_MEM}: {asked.memory_mib * asked.gpus}" if asked.memory_mib else ""
    return f"{names.GPU}: {asked.gpus}{memory}"


def _amounts(asked: ContainerRequest) -> str:
    """Return the amounts of fewer cards: totals, which are smaller too."""
    return _memory_over(asked) + (f", {names.GPU_CORES}: {asked.cores * asked.gpus}" if asked.cores else "")


def _spread(asked: ContainerRequest, gpus: int) -> ContainerRequest | None:
    """Return a request on more cards with equal sums; None where its time does not divide evenly."""
    cores = (asked.cores or 0) * asked.gpus
    if cores % gpus:
        return None
    memory_mib = -(-asked.memory_mib * asked.gpus // gpus)
    return replace(asked, gpus=gpus, memory_mib=memory_mib, cores=cores // gpus if asked.cores else asked.cores)


def _empty(view: NodeView) -> NodeView:
    """Return a node without its pods."""
    cards = tuple(
        replace(state, card=replace(state.card, held_slices=0, held_whole=False), usage=Usage())
        for state in view.state.cards
    )
    roomy = dict.fromkeys(names.KUBELET_RESOURCES, 1 << 40)
    return replace(view, state=replace(view.state, cards=cards), allocatable=roomy)
