"""What the policies can be tuned by."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from vgpu.domain.cards import links
from vgpu.domain.cards.links import LinkWeights


@dataclass(frozen=True, slots=True)
class Weights:
    """How the costs of `fragmentation` compare, and how fast the pods to come are learned (ADR 56).

    Attributes:
        tolerance: nodes whose costs are above the least cost by at most this are equal, in thousandths of a card.
        left: what a free card of a node adds to the node's cost, in thousandths of a card.
        scarcity: exponent of the scarcity of room in the price of a class of pods.
        covered: percent of the pods seen that the typical classes cover.
        half_life: pods after which a pod counts half.
        refresh: questions between two prices.
    """

    tolerance: int = 10
    left: int = 20
    scarcity: float = 1.5
    covered: int = 95
    half_life: int = 4000
    refresh: int = 64


DEFAULTS: Final = Weights()
BOUNDS: Final[Mapping[str, tuple[int, int]]] = {
    "tolerance": (0, 500),
    "left": (0, 1000),
    "scarcity": (0, 4),
    "covered": (1, 100),
    "half_life": (1, 1_000_000),
    "refresh": (1, 100_000),
}


@dataclass(frozen=True, slots=True)
class PolicyWeights:
    """The weights of all policies that have some."""

    fragmentation: Weights = DEFAULTS
    topology: LinkWeights = links.DEFAULTS
