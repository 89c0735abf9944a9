"""Models of cards as bits, so that "the pod accepts this card" is one `&`, for one card or for an array of them."""

from typing import Final

from vgpu.domain.asks.policy import CardSelector
from vgpu.domain.cards.device import Card
from vgpu.domain.identifiers import UNNAMED_CARD

MAX_MODELS: Final = 62  # bits of an int64 that are used; further models have the last bit in common
ALL: Final = (1 << MAX_MODELS) - 1


class Models:
    """The models that were seen; a model keeps its bit."""

    def __init__(self) -> None:
        self._bits: dict[str, int] = {}

    def copy(self) -> "Models":
        """Return the models seen by now, which later ones are not added to."""
        made = Models()
        made._bits = dict(self._bits)
        return made

    @property
    def count(self) -> int:
        """The number of models that have a bit of their own."""
        return len(self._bits)

    @property
    def names(self) -> tuple[str, ...]:
        """The models that have a bit of their own, in the order of their bits."""
        return tuple(self._bits)

    def bit(self, model: str) -> int:
        """Return the bit of a model."""
        if model not in self._bits and len(self._bits) < MAX_MODELS - 1:
            self._bits[model] = 1 << len(self._bits)
        return self._bits.get(model, 1 << (MAX_MODELS - 1))

    def accepted(self, selector: CardSelector) -> int:
        """Return the bits of the models that a pod accepts; a choice by UUID accepts every model."""
        by_model = CardSelector(selector.use_models, selector.avoid_models)
        if by_model == CardSelector():
            return ALL
        return sum(
            bit for model, bit in self._bits.items() if by_model.refusal(Card(UNNAMED_CARD, 0, model, 0)) is None
        )
