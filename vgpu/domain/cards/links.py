"""What a connection between two cards is worth to a pod of several cards."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class LinkWeights:
    """What a pair of cards counts by its connection, for the policy `topology` (ADR 58); only the ratios matter.

    Attributes:
        nvlink: a pair with a direct NVLink, or through NVSwitch.
        same_numa: a pair on one NUMA node, connected by PCIe only.
        other_numa: any other pair.
    """

    nvlink: int = 100
    same_numa: int = 10
    other_numa: int = 1

    @property
    def most(self) -> int:
        """What the best connection counts."""
        return max(self.nvlink, self.same_numa, self.other_numa)


DEFAULTS: Final = LinkWeights()
BOUNDS: Final[Mapping[str, tuple[int, int]]] = {
    "nvlink": (0, 1000),
    "same_numa": (0, 1000),
    "other_numa": (0, 1000),
}
