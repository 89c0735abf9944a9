"""The cards of this machine, as far as limits must fit them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from vgpu.domain.cards.device import Card
from vgpu.domain.errors import NvmlError
from vgpu.domain.formats.limits import ANY_GPU, CardLimit
from vgpu.domain.quantity import MIB, human_mib


@dataclass(frozen=True, slots=True)
class LocalCards:
    """The cards that NVML lists; `problem` says why it lists none."""

    cards: Sequence[Card] = ()
    problem: str = ""


UNKNOWN: Final = LocalCards()


def read() -> LocalCards:
    """Ask NVML. Its adapter is imported here: it would add a tenth to the start of every command."""
    from vgpu.adapters.nvml.session import Nvml  # noqa: PLC0415

    try:
        with Nvml() as nvml:
            cards = [gpu.card for gpu in nvml.gpus()]
    except NvmlError as error:
        return LocalCards(problem=str(error))
    return LocalCards(cards, "" if cards else "NVML lists no card")


def warning(found: LocalCards, limits: Iterable[CardLimit]) -> str:
    """Return what is wrong with limits that a command was started with; empty where they fit."""
    if found.problem:
        return f"no GPU can be used on this machine ({found.problem}); the limits hold as soon as one can"
    return next(filter(None, (beyond(found, limit) for limit in limits)), "")


def beyond(found: LocalCards, limit: CardLimit) -> str:
    """Return why a limit of memory is more than its card has, or the largest card where it is for all; empty if not."""
    cards = [card for card in found.cards if limit.gpu in {ANY_GPU, card.uuid}]
    largest = max(cards, key=lambda card: card.memory_mib, default=None)
    if largest is None or limit.memory_bytes is None or limit.memory_bytes <= largest.memory_mib * MIB:
        return ""
    asked = human_mib(limit.memory_bytes // MIB)
    return f"{asked} is more than card {largest.index} ({largest.model}) has: {human_mib(largest.memory_mib)}"
