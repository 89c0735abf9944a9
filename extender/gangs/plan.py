"""A gang's plan: a place for each member that is not bound, reserved until a deadline."""

import asyncio
from dataclasses import dataclass, field

from vgpu.domain.identifiers import NodeName, PodUid
from vgpu.placement.gang_attempt import MemberPlace


@dataclass(slots=True)
class GangPlan:
    """A plan.

    Attributes:
        number: grows with each plan of this process.
        is_made: whether there is a place for every member; false while the plan is made or changed.
        deadline: the monotonic time in seconds at which the plan ends.
        places: node and cards of each member, by UID.
        answered: members for which filter was answered with their node.
        arrived: members for which kube-scheduler has called bind.
        posted: members whose Binding was posted; their reservations are the binder's.
        barred: nodes that kube-scheduler did not offer for a member, by UID.
        gate: set when every member has arrived.
    """

    number: int
    deadline: float
    is_made: bool = False
    places: dict[PodUid, MemberPlace] = field(default_factory=dict)
    answered: set[PodUid] = field(default_factory=set)
    arrived: set[PodUid] = field(default_factory=set)
    posted: set[PodUid] = field(default_factory=set)
    barred: dict[PodUid, set[NodeName]] = field(default_factory=dict)
    gate: asyncio.Event = field(default_factory=asyncio.Event)

    def bar(self, uid: PodUid, node: NodeName) -> None:
        """Take a node that kube-scheduler does not offer for a member."""
        self.barred.setdefault(uid, set()).add(node)

    def forget(self, uid: PodUid) -> None:
        """Remove a member that is bound or gone."""
        self.places.pop(uid, None)
        for known in (self.answered, self.arrived, self.posted):
            known.discard(uid)

    @property
    def nodes(self) -> dict[NodeName, int]:
        """How many members are planned on each node."""
        found: dict[NodeName, int] = {}
        for place in self.places.values():
            found[place.node] = found.get(place.node, 0) + 1
        return dict(sorted(found.items()))
