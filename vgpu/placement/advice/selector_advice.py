"""Advice about which cards a pod accepts: by model, by UUID, beside which pods, and for groups in space."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from vgpu.domain import names
from vgpu.domain.asks import space
from vgpu.domain.asks.policy import CardSelector, GangCards, Labels, PackingPolicy
from vgpu.domain.asks.request import PodRequest
from vgpu.domain.identifiers import CardUuid
from vgpu.placement.advice.trial import Advice, Pause, fitting
from vgpu.placement.snapshot import NodeView

MAX_MODELS: Final = 5  # that are named


def other_cards(request: PodRequest, views: Sequence[NodeView], policy: PackingPolicy, pause: Pause) -> Advice | None:
    """Find out whether the pod is placed on cards of any model and UUID; name those that exist where its own do not."""
    selector = request.options.selector
    anything = frozenset[CardUuid]()
    opened = replace(selector, use_models=(), avoid_models=(), use_uuids=anything, avoid_uuids=anything)
    if opened == selector:
        return None
    found = fitting(_selecting(request, opened), views, policy, pause)
    absent = _absent(selector, views)
    if found is None:
        return Advice("accept-other-cards", absent) if absent else None
    return Advice(
        "accept-other-cards", absent or "remove the annotations that choose cards by model or UUID", found.name
    )


def other_neighbours(
    request: PodRequest, views: Sequence[NodeView], policy: PackingPolicy, pause: Pause
) -> Advice | None:
    """Find out whether the pod is placed wherever other pods are."""
    selector = request.options.selector
    beside = replace(selector, beside=None)
    if beside != selector and (found := fitting(_selecting(request, beside), views, policy, pause)):
        first = (
            "" if selector.beside else f"no pod with {_labels(request.options.affinity)} holds a card: start one, or "
        )
        text = f"{first}write {names.PREFERRED_GPU_AFFINITY} instead of {names.GPU_AFFINITY}"
        return Advice("prefer-neighbours", text, found.name)
    apart = replace(selector, apart=frozenset[CardUuid]())
    if apart != selector and (found := fitting(_selecting(request, apart), views, policy, pause)):
        text = f"write {names.PREFERRED_GPU_ANTI_AFFINITY} instead of {names.GPU_ANTI_AFFINITY}"
        if request.options.is_apart_from_gang:
            text = f"write {names.GANG_CARDS}: {GangCards.ANY}, where two pods of the gang may be on one card"
        return Advice("prefer-neighbours", text, found.name)
    return None


def without_space(request: PodRequest, views: Sequence[NodeView], policy: PackingPolicy, pause: Pause) -> Advice | None:
    """Find out whether the pod is placed where no card serves groups in space."""
    if request.options.space is None or any(card.card.serves_space for view in views for card in view.state.cards):
        return None
    selector = replace(request.options.selector, in_space=False)
    alone = replace(_selecting(request, selector), options=replace(request.options, space=None, selector=selector))
    found = fitting(alone, views, policy, pause)
    if found is None:
        return None
    text = (
        f"no card serves groups in space: install vgpu-space (docs/guide.md, Groups in space), or remove "
        f"{names.COMPUTE_POLICY}: {space.SPACE}"
    )
    return Advice("serve-space", text, found.name)


def _selecting(request: PodRequest, selector: CardSelector) -> PodRequest:
    return replace(request, options=replace(request.options, selector=selector))


def _absent(selector: CardSelector, views: Sequence[NodeView]) -> str:
    """Return what to change where no card is of the models, or has the UUIDs, that a pod asks for."""
    cards = [card.card for view in views for card in view.state.cards]
    models = sorted({card.model for card in cards})
    if selector.use_models and not any(text in model.casefold() for model in models for text in selector.use_models):
        known = ", ".join(models[:MAX_MODELS]) + (" and more" if len(models) > MAX_MODELS else "")
        wanted = " or ".join(selector.use_models)
        return f"no card is of model {wanted}; change {names.USE_GPU_MODEL}: there are {known or 'none'}"
    if selector.use_uuids and selector.use_uuids.isdisjoint(card.uuid for card in cards):
        return f"no card has this UUID; change {names.USE_GPU_UUID}: vgpu get gpus shows those that exist"
    return ""


def _labels(labels: Labels) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(labels))
