"""Where the members of a gang are placed together: all of them, or none.

Members are placed one after the other, each beside those before, by the policies that place a single pod. Equal members
that ask for one card each are placed wherever that is possible. For other gangs up to three orders are tried: as given;
the largest member first; and the largest first, each on the cards with the most room. A gang of unequal members may be
refused although a better packing exists.

The caller may leave out most nodes. Where more nodes than members have room for a member, as many of them as there are
members suffice: each member before has changed one of them at most.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from vgpu.domain.asks.policy import PackingPolicy
from vgpu.domain.identifiers import PodUid
from vgpu.placement.gang_attempt import Attempt, Member, MemberPlace, Steps
from vgpu.placement.policies import DefaultPolicies
from vgpu.placement.snapshot import NodeView


@dataclass(frozen=True, slots=True)
class Shortfall:
    """There is no place for all members: at most this many of them were placed together."""

    placed: int


def plan(
    members: Sequence[Member],
    views: Iterable[NodeView],
    defaults: DefaultPolicies,
    pause: Callable[[], None] = lambda: None,
) -> dict[PodUid, MemberPlace] | Shortfall:
    """Return a place for every member by UID, or how many find one. The order of `views` does not matter.

    `pause` is called after each node that is judged, and may raise.
    """
    planning = steps(members, views, defaults)
    while True:
        try:
            next(planning)
        except StopIteration as end:
            found: dict[PodUid, MemberPlace] | Shortfall = end.value
            return found
        pause()


def steps(
    members: Sequence[Member], views: Iterable[NodeView], defaults: DefaultPolicies
) -> Steps[dict[PodUid, MemberPlace] | Shortfall]:
    """Plan as `plan` does, and yield after each node that is judged: the caller may do other work in between."""
    fleet = {view.name: view for view in views}
    most = 0
    for order, cards in _attempts(members):
        nodes = dict(fleet) if cards is None else {name: _without_jobs(view) for name, view in fleet.items()}
        places = yield from Attempt(nodes, defaults, cards).place(order)
        if len(places) == len(members):
            return places
        most = max(most, len(places))
    return Shortfall(most)


def _without_jobs(view: NodeView) -> NodeView:
    """Return a node on which cards are chosen as if no job were there: room for all members comes first."""
    return replace(view, state=replace(view.state, jobs=())) if view.state.jobs else view


def _attempts(members: Sequence[Member]) -> Iterator[tuple[Sequence[Member], PackingPolicy | None]]:
    """Yield orders of the members, each with the policy for cards; None: each member's own policy."""
    yield members, None
    are_equal = len({member.request for member in members}) == 1
    if are_equal and len(members[0].request.choosers) == 1 and members[0].request.anchor.gpus == 1:
        return
    largest = sorted(members, key=_size, reverse=True)
    yield largest, None
    yield largest, PackingPolicy.SPREAD


def _size(member: Member) -> tuple[bool, int, int]:
    asked = member.request.choosers
    cards = sum(container.gpus for container in asked)
    return any(container.whole for container in asked), cards, sum(c.gpus * c.memory_mib for c in asked)
