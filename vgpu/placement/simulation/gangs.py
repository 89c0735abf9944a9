"""Which pods of a simulation start together, and in which order pods are placed.

The pods of a gang are placed when its first pod comes: as many as its size together, and more of them one by one.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from vgpu.domain.asks.host_request import HostRequest
from vgpu.domain.asks.node_rules import NodeRules
from vgpu.domain.asks.request import PodRequest
from vgpu.domain.identifiers import PodUid
from vgpu.placement import gang
from vgpu.placement.gang import Shortfall
from vgpu.placement.gang_attempt import Member, MemberPlace
from vgpu.placement.policies import DefaultPolicies
from vgpu.placement.snapshot import NodeView


@dataclass(frozen=True, slots=True)
class Ganged:
    """A pod's gang.

    Attributes:
        name: another one for each gang of a simulation.
        size: how many of the pods start together; None: all pods of the simulation that name the gang.
    """

    name: str
    size: int | None = None


@dataclass(frozen=True, slots=True)
class GangLanding:
    """What a simulation says of a pod's gang: its name and size, and for how many of the pods there is room."""

    name: str
    size: int
    fit: int


@dataclass(frozen=True, slots=True)
class Together:
    """Pods that start together, by their positions, and the other pods of their gang; a pod without a gang by itself.

    Attributes:
        gang: None for a pod by itself.
        size: how many pods start together.
        first: the pods that start together; fewer than the size where there are no more.
        more: the other pods of the gang.
    """

    gang: Ganged | None
    size: int
    first: tuple[int, ...]
    more: tuple[int, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Whether there are as many pods as start together."""
        return len(self.first) == self.size

    def landing(self, fit: int) -> GangLanding | None:
        """Return what is said of each of the pods, where there is room for `fit` of them."""
        return None if self.gang is None else GangLanding(self.gang.name, self.size, fit)


def together(gangs: Sequence[Ganged | None]) -> Iterator[Together]:
    """Yield the pods in the order in which they are placed; `gangs` has the gang of each."""
    positions: dict[str, list[int]] = {}
    for position, ganged in enumerate(gangs):
        if ganged is not None:
            positions.setdefault(ganged.name, []).append(position)
    for position, ganged in enumerate(gangs):
        if ganged is None:
            yield Together(None, 1, (position,))
        elif positions[ganged.name][0] == position:
            members = positions[ganged.name]
            size = len(members) if ganged.size is None else ganged.size
            yield Together(ganged, size, tuple(members[:size]), tuple(members[size:]))


def member(
    position: int, request: PodRequest, host: HostRequest, rules: NodeRules, views: Iterable[NodeView]
) -> Member:
    """Return the pod at a position of the simulation, with the nodes that its rules refuse."""
    avoided = frozenset(view.name for view in views if rules.refusal(view.name, view.marks) is not None)
    return Member(PodUid(str(position)), request, host, avoided=avoided)


def plan(
    group: Together,
    members: Sequence[Member],
    views: Iterable[NodeView],
    defaults: DefaultPolicies,
    pause: Callable[[], None],
) -> list[MemberPlace] | Shortfall:
    """Return a place for each of the pods that start together."""
    if not group.is_complete:
        return Shortfall(0)
    found = gang.plan(members, views, defaults, pause)
    return found if isinstance(found, Shortfall) else [found[member.uid] for member in members]
