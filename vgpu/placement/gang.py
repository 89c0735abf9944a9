"""Where the members of a gang are placed together: all of them, or none.

Members are placed one after the other, each beside those before, by the policies that place a single pod. Equal members
that ask for one card each are placed wherever that is possible. For other gangs up to three orders are tried: as given;
the largest member first; and the largest first, each on the cards with the most room. A gang of unequal members may be
refused although a better packing exists.

The caller may leave out most nodes. Where more nodes than members have room for a member, as many of them as there are
members suffice: each member before has changed one of them at most.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from vgpu import host_request
from vgpu.assignment import Assignment
from vgpu.host_request import HostRequest
from vgpu.placement import rank, room
from vgpu.placement.policies import POLICIES, DefaultPolicies
from vgpu.placement.question import Question
from vgpu.placement.snapshot import NodeView
from vgpu.policy import PackingPolicy
from vgpu.request import PodRequest
from vgpu.share import HostRoom

MAX_COUNTED: Final = 16  # members for which a node's room is counted, to keep a gang on few nodes


@dataclass(frozen=True, slots=True)
class Member:
    """A member that is to be placed.

    Attributes:
        uid: of the pod.
        request: what the pod asks for.
        host: what it requests of its node's CPU and memory.
        nodes: the nodes on which it may be placed; None: on any.
        avoided: nodes on which it must not be placed.
    """

    uid: str
    request: PodRequest
    host: HostRequest = host_request.NOTHING
    nodes: frozenset[str] | None = None
    avoided: frozenset[str] = frozenset()

    def may_use(self, node: str) -> bool:
        """Whether the member may be placed on a node."""
        return node not in self.avoided and (self.nodes is None or node in self.nodes)


@dataclass(frozen=True, slots=True)
class Place:
    """A member's node and cards."""

    node: str
    assignment: Assignment


@dataclass(frozen=True, slots=True)
class Shortfall:
    """There is no place for all members: at most this many of them were placed together."""

    placed: int


def plan(
    members: Sequence[Member], views: Iterable[NodeView], defaults: DefaultPolicies
) -> dict[str, Place] | Shortfall:
    """Return a place for every member by UID, or how many find one. The order of `views` does not matter."""
    fleet = {view.name: view for view in views}
    most = 0
    for order, cards in _attempts(members):
        places = _Attempt(dict(fleet), defaults, cards).place(order)
        if len(places) == len(members):
            return places
        most = max(most, len(places))
    return Shortfall(most)


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


_Kind = tuple[PodRequest, HostRequest]  # equal members


@dataclass(frozen=True, slots=True)
class _Fit:
    """A member on a node: the view for which it holds, where the member would be placed, and what that costs."""

    view: NodeView
    assignment: Assignment | None
    cost: int = 0


@dataclass(slots=True)
class _Attempt:
    """One order of the members. `cards` replaces their policies for cards where it is not None."""

    fleet: dict[str, NodeView]
    defaults: DefaultPolicies
    cards: PackingPolicy | None
    known: dict[_Kind, dict[str, _Fit]] = field(default_factory=dict)
    counted: dict[tuple[_Kind, str], tuple[NodeView, int]] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)

    def place(self, members: Sequence[Member]) -> dict[str, Place]:
        """Return the places of the members before the first one that fits nowhere."""
        places: dict[str, Place] = {}
        for number, member in enumerate(members):
            chosen = self._best(member, len(members) - number)
            if chosen is None:
                break
            places[member.uid] = chosen
            self._take(member, chosen)
        return places

    def _best(self, member: Member, rest: int) -> Place | None:
        fitting = {name: fit for name, fit in self._fits(member).items() if fit.assignment and member.may_use(name)}
        policy = self.defaults.node_policy_for(member.request.options)
        if policy is PackingPolicy.TOPOLOGY and fitting:
            fitting = self._near(member, fitting, rest)
        costs = {name: fit.cost for name, fit in fitting.items()}
        equal = min(costs.values(), default=0) + POLICIES[policy].tolerance(self.defaults.demand.weights)
        best = min(costs, key=lambda name: (max(costs[name], equal), rank.fixed_order(name)), default=None)
        chosen = fitting[best].assignment if best is not None else None
        return None if best is None or chosen is None else Place(best, chosen)

    def _near(self, member: Member, fitting: Mapping[str, _Fit], rest: int) -> dict[str, _Fit]:
        """Return the nodes that keep the gang on few nodes: those in use, else those with room for the most members."""
        used = {name: fit for name, fit in fitting.items() if name in self.used}
        if used:
            return used
        copies = {name: min(rest, self._copies(member, name, fit)) for name, fit in fitting.items()}
        most = max(copies.values())
        return {name: fit for name, fit in fitting.items() if copies[name] == most}

    def _copies(self, member: Member, name: str, fit: _Fit) -> int:
        """Return for how many equal members a node has room, at most `MAX_COUNTED`."""
        key = ((member.request, member.host), name)
        known = self.counted.get(key)
        if known is not None and known[0] is fit.view:
            return known[1]
        view, count = fit.view, 0
        while fit.assignment is not None and count < MAX_COUNTED:
            count += 1
            fit = self._judged(_with_member(fit.view, member, fit.assignment), member)
        self.counted[key] = view, count
        return count

    def _fits(self, member: Member) -> dict[str, _Fit]:
        """Return the member on each node."""
        kind = (member.request, member.host)
        if kind not in self.known:
            self.known[kind] = {name: self._judged(view, member) for name, view in self.fleet.items()}
        return self.known[kind]

    def _judged(self, view: NodeView, member: Member) -> _Fit:
        host = view.state.host
        if host.cpu_milli < member.host.cpu_milli or host.memory_mib < member.host.memory_mib:
            return _Fit(view, None)
        placed = view.place(member.request, self.cards or self.defaults.gpu_policy_for(member.request.options))
        if not isinstance(placed, Assignment):
            return _Fit(view, None)
        return _Fit(view, placed, self._cost(view, member))

    def _cost(self, view: NodeView, member: Member) -> int:
        models, state = self.defaults.models, view.state
        ask = room.ask_of(member.request, member.host.cpu_milli, member.host.memory_mib, state.slice_mib, models)
        row = POLICIES[self.defaults.node_policy_for(member.request.options)]
        return row.cost(state, room.room_of(state, models), Question(ask, self.defaults.demand, models))

    def _take(self, member: Member, place: Place) -> None:
        """Place a member, and judge all known kinds of members on its node again."""
        node = self.fleet[place.node] = _with_member(self.fleet[place.node], member, place.assignment)
        self.used.add(place.node)
        for (request, host), fits in self.known.items():
            fits[place.node] = self._judged(node, Member("", request, host))


def _with_member(view: NodeView, member: Member, chosen: Assignment) -> NodeView:
    """Return a node after a member was placed on it."""
    after, host = view.with_pod(member.request, chosen), view.state.host
    left = HostRoom(host.cpu_milli - member.host.cpu_milli, host.memory_mib - member.host.memory_mib)
    return replace(after, state=replace(after.state, host=left))
