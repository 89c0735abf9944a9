"""The outcome of filter: a placement for each node that fits, a refusal for each that does not."""

from collections import Counter
from dataclasses import dataclass, field

from vgpu.domain.cards.reasons import Reason
from vgpu.domain.grants.assignment import Assignment
from vgpu.domain.identifiers import NodeName
from vgpu.placement.choose import NodeRefusal

Placement = Assignment | NodeRefusal


@dataclass(frozen=True, slots=True)
class FilterVerdict:
    """The nodes that fit, in the order asked, and the refusals of the others by node name."""

    fitting: list[NodeName] = field(default_factory=list)
    refused: dict[NodeName, NodeRefusal] = field(default_factory=dict)

    @property
    def reasons(self) -> Counter[Reason]:
        """How many nodes were refused for each reason."""
        return Counter(refusal.reason for refusal in self.refused.values())

    def add(self, node: NodeName, placement: Placement) -> None:
        """Add the verdict on one node."""
        if isinstance(placement, NodeRefusal):
            self.refused[node] = placement
        else:
            self.fitting.append(node)
