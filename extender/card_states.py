"""The states of a node's cards. A change of a node changes few of its cards: the others keep their state as it is."""

from collections.abc import Sequence

from vgpu.device import Card
from vgpu.share import NO_USAGE, CardState
from vgpu.usage import Usages


def of_cards(
    cards: Sequence[Card], slice_mib: int, taken: Usages, before: Sequence[CardState] = ()
) -> tuple[CardState, ...]:
    """Return the state of each card; `before` are the states that the cards had last.

    A state that has not changed is the same object, so that whoever compares states finds it equal at once.
    """
    if not before or len(before) != len(cards) or before[0].slice_mib != slice_mib:
        return tuple([CardState(card, slice_mib, taken.get(card.uuid, NO_USAGE)) for card in cards])
    return tuple(
        [
            known
            if known.card is card and known.usage is taken.get(card.uuid, NO_USAGE)
            else CardState(card, slice_mib, taken.get(card.uuid, NO_USAGE))
            for card, known in zip(cards, before, strict=True)
        ]
    )
