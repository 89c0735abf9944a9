"""The states of a node's cards. A change of a node changes few of its cards: the others keep their state as it is."""

from collections.abc import Sequence

from vgpu.domain.cards.device import Card
from vgpu.domain.cards.share import NO_USAGE, CardState, Usage
from vgpu.domain.grants.usage import Usages


def of_cards(
    cards: Sequence[Card], slice_mib: int, taken: Usages, before: Sequence[CardState] = ()
) -> tuple[CardState, ...]:
    """Return the state of each card; `before` are the states that the cards had last.

    The state of a card with the same report and usage as before is returned as the same object: comparing the two
    states then takes no time.
    """
    last = before if len(before) == len(cards) else (None,) * len(cards)
    return tuple(
        [
            _state(card, slice_mib, taken.get(card.uuid, NO_USAGE), known)
            for card, known in zip(cards, last, strict=True)
        ]
    )


def _state(card: Card, slice_mib: int, used: Usage, known: CardState | None) -> CardState:
    if known is not None and known.card is card and known.usage is used and known.slice_mib == slice_mib:
        return known
    return CardState(card, slice_mib, used)
