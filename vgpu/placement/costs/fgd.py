"""The policy `fgd`: the least growth of the expected fragmentation (Weng et al., USENIX ATC 2023).

https://www.usenix.org/conference/atc23/presentation/weng. The authors' scheduler
(https://github.com/hkust-adsl/kubernetes-scheduler-simulator) rounds scores down to whole numbers, 25 of them for one
card, and takes the first name of equal nodes. Here the cards are the tightest that fit.
"""

from collections.abc import Sequence
from typing import Final

from vgpu.placement.demand import MILLION, Demand
from vgpu.placement.question import Question
from vgpu.placement.room import CARD, Ints, NodeRoom, PodAsk, after, fits

STEP: Final = CARD // 25 * MILLION


def cost(room: NodeRoom, question: Question) -> Ints:
    """Return the growth of the expected fragmentation, in steps of a 25th of a card."""
    return priced([growth(room, question.ask, ask) for ask in question.demand.asks], question.demand)


def growth(room: NodeRoom, ask: PodAsk, typical: PodAsk) -> Ints:
    """Return how much more of a node's cards a class of pods cannot use after a pod, in thousandths of a card."""
    return stranded(after(room, ask), typical) - stranded(room, typical)


def priced(grown: Sequence[Ints], demand: Demand) -> Ints:
    """Return the cost of the growth for each typical class."""
    return sum(typical.popularity * more for typical, more in zip(demand.typical, grown, strict=True)) // STEP


def stranded(room: NodeRoom, ask: PodAsk) -> Ints:
    """Return how much of a node's cards a class of pods cannot use, in thousandths of a card: F_n(m) of the paper.

    All that is free, where the node cannot run such a pod and for pods without cards.
    """
    fitting = [fits(card, ask) * 1 for card in room.cards]
    has_host = (room.cpu_milli >= ask.cpu_milli) & (room.memory_mib >= ask.memory_mib)
    runs = has_host & (sum(fitting) >= ask.gpus) & (ask.gpus > 0)
    unfit = sum(card.share * (1 - is_fitting) for card, is_fitting in zip(room.cards, fitting, strict=True))
    return room.share + (unfit - room.share) * runs
