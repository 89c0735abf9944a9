"""What a percentage of a card's memory is in MiB: decided at admission, before the pod has a card.

The kubelet, quotas and Kueue count a fixed amount, so a percentage needs cards of one size. Sizes that differ by what
a driver or ECC reserves count as one: the smallest, so that shares fit on all of them (ADR 142).
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Self

from vgpu.domain import names, quantity, slices
from vgpu.domain.asks.policy import CardSelector
from vgpu.domain.cards.device import Card, CardMode
from vgpu.domain.quantity import WHOLE_PERCENT
from vgpu.domain.slices import CardPart

CLOSE_PERCENT: Final = 90  # of the largest size: ECC takes a sixteenth of a card, and drivers differ by under 1 %
_MAX_LISTED: Final = 4  # sizes in a message
_OTHERWISE: Final = f"ask for {names.GPU_MEM} in MiB"


@dataclass(frozen=True, slots=True)
class CardSizes:
    """The cards that shares of a pod may be placed on.

    Attributes:
        models: the models of each size, by MiB.
        are_cards_known: whether any card of the cluster is known.
    """

    models: Mapping[int, frozenset[str]] = field(default_factory=dict)
    are_cards_known: bool = False

    @classmethod
    def of(cls, cards: Iterable[Card], selector: CardSelector) -> Self:
        """Return the sizes of the cards that take shares and that the selector accepts."""
        models, is_known = defaultdict[int, set[str]](set), False
        for card in cards:
            is_known = True
            if card.mode is CardMode.SHARED and card.memory_mib > 0 and selector.refusal(card) is None:
                models[card.memory_mib].add(card.model)
        return cls({mib: frozenset(models[mib]) for mib in sorted(models)}, is_known)

    @property
    def smallest(self) -> int:
        """MiB of the smallest card."""
        return min(self.models)

    @property
    def largest(self) -> int:
        """MiB of the largest card."""
        return max(self.models)

    @property
    def count_as_one(self) -> bool:
        """Whether a percent of the smallest card is about a percent of each card."""
        return self.smallest * WHOLE_PERCENT >= self.largest * CLOSE_PERCENT


def resolve(percent: int, sizes: CardSizes, slice_mib: int) -> CardPart | str:
    """Return what a percent is of each card, or why that is not known and what to write instead."""
    if not sizes.models:
        return _no_card(sizes)
    if not sizes.count_as_one:
        return _different(percent, sizes, slice_mib)
    part = slices.percent_of(sizes.smallest, percent, slice_mib)
    if part is None:
        least = slices.least_percent(sizes.smallest, slice_mib)
        size = quantity.human_mib(sizes.smallest)
        return f"is less than a memory slice of {slice_mib} MiB on a card of {size}; write {least} or more"
    return part


def given(part: CardPart, sizes: CardSizes, slice_mib: int) -> str:
    """Say what a percentage is, for the user: `is 40448 MiB on each card: 158 of 316 memory slices ...`."""
    of_card = f"of the {slices.holding(sizes.smallest, slice_mib)} memory slices of a card of {sizes.smallest} MiB"
    others = f"; the cards that the pod accepts have up to {sizes.largest} MiB" if len(sizes.models) > 1 else ""
    return f"is {part.memory_mib} MiB on each card: {part.slices} {of_card}{others}"


def _no_card(sizes: CardSizes) -> str:
    if sizes.are_cards_known:
        return f"cannot be resolved: no card of the cluster takes shares of this pod; {_OTHERWISE}"
    return f"cannot be resolved: no card of the cluster is known yet; try again when nodes have GPUs, or {_OTHERWISE}"


def _different(percent: int, sizes: CardSizes, slice_mib: int) -> str:
    """Say what the percent would be on each size: the amounts that the user may ask for instead."""
    listed = [
        f"{part.memory_mib if (part := slices.percent_of(mib, percent, slice_mib)) else 0} MiB on {min(models)}"
        for mib, models in sorted(sizes.models.items(), reverse=True)[:_MAX_LISTED]
    ]
    more = [f"{len(sizes.models) - _MAX_LISTED} more sizes"] if len(sizes.models) > _MAX_LISTED else []
    amounts = ", ".join(listed + more)
    return (
        f"is not one amount on the cards that the pod accepts ({amounts}); choose a model by the annotation "
        f"{names.USE_GPU_MODEL}, or {_OTHERWISE}"
    )
