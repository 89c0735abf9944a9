"""Why a gang waits, in words that its owner can act on. Pure: a gang, and what is remembered of it."""

from collections.abc import Iterable

from extender.gangs.gang_progress import GangProgress
from extender.gangs.plan import GangPlan
from extender.gangs.watched_gang import WatchedGang
from extender.state.fields import api_times
from extender.state.gang_members import kind_of
from extender.state.held_room import HeldRoom
from vgpu.domain import names
from vgpu.domain.asks import request_text
from vgpu.domain.asks.gang import GangSource
from vgpu.domain.asks.policy import GangCards
from vgpu.domain.cards.reasons import Reason

MAX_NODES = 8  # in a sentence


def why(found: WatchedGang, progress: GangProgress, hindrance: Reason | None) -> tuple[Reason, str] | None:
    """Return the reason and the sentence for the members of a gang that wait; None where the gang has started."""
    if progress.is_started or not found.present + found.unplaceable:
        return None
    if hindrance is None:
        return _going_on(found, progress)
    if hindrance is Reason.GANG_SIZE_UNKNOWN:
        return hindrance, f"{title(found)}: {found.problem}"
    if hindrance is Reason.GANG_INCOMPLETE:
        return hindrance, _incomplete(found)
    return hindrance, f"{title(found)}: {progress.failure}; it is planned again after a pause"


def title(found: WatchedGang) -> str:
    """Name a gang: `gang train of 8 pods`."""
    return f"{kind_of(found.key)} {found.key[2]}" + (f" of {found.size} pods" if found.size else "")


def arrivals(found: WatchedGang, plan: GangPlan) -> str:
    """Say how many members can be bound, and which cannot: `7 of 8 pods can be bound; waits for: train-7`.

    When the gate of the plan is open, say how many are bound.
    """
    if plan.gate.is_set():
        bound = len(found.bound) + found.others
        return f"{bound} of {found.size} pods are bound; not bound: {listed(pod.name for pod in found.waiting)}"
    absent = [pod for pod in found.waiting if pod.uid not in plan.arrived]
    ready = found.present - len(absent)
    return f"{ready} of {found.size} pods can be bound; waits for: {listed(pod.name for pod in absent)}"


def part(found: WatchedGang) -> str:
    """Say which part of a gang is bound without the rest."""
    count = len(found.bound) + found.others
    absent = f"waits for: {listed(pod.name for pod in found.waiting)}" if found.waiting else "no other pod exists"
    return f"{title(found)}: only {count} of them could be bound; {absent}"


def kept_room(held: HeldRoom, after_s: float) -> str:
    """Say which room is kept free for a gang."""
    nodes = listed(f"{node} ({len(cards)})" for node, cards in held.usages.items())
    why = f"it has waited for {after_s:.0f} s, so room on {held.cards} cards is kept free for it"
    return f"{why} until {api_times.text(held.until_ms)} at most: {nodes}"


def _going_on(found: WatchedGang, progress: GangProgress) -> tuple[Reason, str]:
    if progress.plan is not None and progress.plan.places:
        nodes = listed(f"{node} ({count})" for node, count in progress.plan.nodes.items())
        return Reason.GANG_PLANNED_ELSEWHERE, f"{title(found)}: planned on {nodes}; {arrivals(found, progress.plan)}"
    if progress.placed is None:
        held = f"; {progress.held}" if progress.held else ""
        return Reason.GANG_WAITS, f"{title(found)}: all pods exist; waits for the scheduler{held}"
    needs = " or ".join(
        dict.fromkeys(request_text.needs(pod.parsed.request) for pod in found.waiting if pod.parsed.request)
    )
    apart = any(pod.parsed.request and pod.parsed.request.options.is_apart_from_gang for pod in found.waiting)
    own = f", on cards without another pod of the gang ({names.GANG_CARDS}: {GangCards.OWN})" if apart else ""
    text = f"each pod {needs}{own}; the free cards take {progress.placed} of the {found.needs} pods that are not bound"
    text += f", so room for {found.needs - progress.placed} more is missing" if found.needs > progress.placed else ""
    held = f"; {progress.held}" if progress.held else ""
    return Reason.GANG_INSUFFICIENT_CARDS, f"{title(found)}: {text}; none starts before all can{_priority(found)}{held}"


def _priority(found: WatchedGang) -> str:
    """Say that a gang evicts nothing, of a gang whose pods would evict others if they were single pods."""
    may_preempt = any(pod.scheduling.priority > 0 and pod.scheduling.may_preempt for pod in found.waiting)
    return "; a gang evicts no pod, also not one of lower priority" if may_preempt else ""


def _incomplete(found: WatchedGang) -> str:
    more = f"waits for {found.missing} more pod{'s' if found.missing > 1 else ''} of its namespace"
    if found.key[1] is GangSource.ANNOTATION:
        more += f" with {names.GANG}: {found.key[2]}"
    held = f"; {found.unplaceable} cannot be placed: gated, not admitted, or with affinity" if found.unplaceable else ""
    return f"{title(found)}: {found.present} exist; {more}{held}"


def listed(items: Iterable[str]) -> str:
    """List the first 8 names, and say how many more there are."""
    every = list(items)
    more = f" and {len(every) - MAX_NODES} more" if len(every) > MAX_NODES else ""
    return ", ".join(every[:MAX_NODES]) + more
