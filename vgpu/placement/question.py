"""What the cost of a node depends on beside the node: the pod, and the pods to come."""

from dataclasses import dataclass, field
from typing import Final

from vgpu.placement import demand
from vgpu.placement.demand import Demand
from vgpu.placement.models import Models
from vgpu.placement.room import PodAsk


@dataclass(frozen=True, slots=True)
class Question:
    """Which node is best for a pod?

    Attributes:
        ask: what the pod asks for.
        demand: the pods to come.
        models: the bits of the cards' models, which `ask` and `demand` refer to.
    """

    ask: PodAsk
    demand: Demand = demand.EMPTY
    models: Models = field(default_factory=Models)


NO_CARDS: Final = Question(PodAsk(0, 0, 0, 0, 0, 0, 0))
