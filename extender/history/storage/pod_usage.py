"""What a pod took of each card, derived from all events about the pod at once: their order does not matter."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from extender.history.recording.events import CardShare, Decision, End, Event, Resize
from extender.history.storage.tables import OPEN
from vgpu.domain.quantity import FULL_CORES


@dataclass(frozen=True, slots=True)
class TakenPeriod:
    """What a pod took of a card in a period; the fields are those of the table `holdings`."""

    card: CardShare
    from_ms: int
    until_ms: int
    bound: int
    waited_ms: int


@dataclass(frozen=True, slots=True)
class PodUsage:
    """A pod that was bound, with its end where it is known, and what it took."""

    decision: Decision
    end: End | None
    taken: tuple[TakenPeriod, ...]


def share(card: CardShare) -> float:
    """Return the larger of the parts of memory and of time, 0 to 1. Of a card of unknown size only the time counts."""
    if card.whole:
        return 1.0
    memory = card.memory_mib / card.card_mib if card.card_mib else 0.0
    return min(1.0, max(memory, card.cores / FULL_CORES))


def cores(card: CardShare) -> int:
    """Return the percent of the card's time that is guaranteed."""
    return FULL_CORES if card.whole else card.cores


def derive(events: Sequence[Event]) -> PodUsage | None:
    """Return what a pod took, from its decision, its end and its resizes; None where no decision is known.

    An end that is an interval counts at its beginning: usage is what is proved.
    """
    decision = next((event for event in events if isinstance(event, Decision)), None)
    if decision is None:
        return None
    end = next((event for event in events if isinstance(event, End) and not event.container), None)
    until = max(end.after_ms, decision.at_ms) if end else OPEN
    resizes = sorted((event for event in events if isinstance(event, Resize)), key=lambda resize: resize.at_ms)
    return PodUsage(decision, end, tuple(_taken(decision, resizes, until)))


def _taken(decision: Decision, resizes: Sequence[Resize], until: int) -> Iterator[TakenPeriod]:
    for number, card in enumerate(sorted(decision.cards, key=lambda share: share.gpu)):
        own = [(resize.at_ms, resize.card) for resize in resizes if resize.card.gpu == card.gpu]
        steps = [(decision.at_ms, card), *(step for step in own if decision.at_ms < step[0] < until), (until, card)]
        is_first = number == 0
        for (begin, state), (stop, _) in pairwise(steps):
            waited = _waited_ms(decision) if is_first else 0
            yield TakenPeriod(state, begin, stop, int(is_first), waited)
            is_first = False


def _waited_ms(decision: Decision) -> int:
    return max(0, decision.at_ms - decision.created_ms) if decision.created_ms else 0
