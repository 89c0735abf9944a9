"""One attempt to place the members of a gang in a given order, each beside those before.

A node is judged once for each kind of member, and again when a member was placed on it.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias, TypeVar

from vgpu.domain.asks import host_request
from vgpu.domain.asks.host_request import HostRequest
from vgpu.domain.asks.policy import PackingPolicy
from vgpu.domain.asks.request import PodRequest
from vgpu.domain.grants.assignment import Assignment
from vgpu.domain.identifiers import NO_POD, CardUuid, NodeName, PodUid
from vgpu.placement import neighbours, rank, room
from vgpu.placement.policies import POLICIES, DefaultPolicies
from vgpu.placement.question import Question
from vgpu.placement.snapshot import NodeView

MAX_COUNTED: Final = 16  # members for which a node's room is counted, to keep a gang on few nodes

T = TypeVar("T")
Steps: TypeAlias = Generator[None, None, T]  # work in steps of a millisecond or less, and its result


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

    uid: PodUid
    request: PodRequest
    host: HostRequest = host_request.NOTHING
    nodes: frozenset[NodeName] | None = None
    avoided: frozenset[NodeName] = frozenset()

    def may_use(self, node: NodeName) -> bool:
        """Whether the member may be placed on a node."""
        return node not in self.avoided and (self.nodes is None or node in self.nodes)


@dataclass(frozen=True, slots=True)
class MemberPlace:
    """A member's node and cards."""

    node: NodeName
    assignment: Assignment


@dataclass(frozen=True, slots=True)
class _MemberFit:
    """A member on a node: the view for which it holds, where the member would be placed, and what that costs."""

    view: NodeView
    assignment: Assignment
    cost: int


@dataclass(slots=True)
class _Kind:
    """Equal members: one of them, the nodes on which it fits, and for how many of them a node has room."""

    member: Member
    fits: dict[NodeName, _MemberFit] = field(default_factory=dict)
    copies: dict[NodeName, tuple[NodeView, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _GangCards:
    """The cards of one node that members have: of all members, and of those that want cards of their own."""

    every: frozenset[CardUuid] = frozenset()
    own: frozenset[CardUuid] = frozenset()

    def with_pod(self, request: PodRequest, held: Assignment) -> "_GangCards":
        """Return the cards after one more member was placed."""
        cards = held.gpus()
        return _GangCards(self.every | cards, self.own | cards if request.options.is_apart_from_gang else self.own)

    def request(self, request: PodRequest) -> PodRequest:
        """Return what a member asks for, off the cards of the members that must not be beside it."""
        return neighbours.off(request, self.every if request.options.is_apart_from_gang else self.own)


_NO_CARDS: Final = _GangCards()


@dataclass(slots=True)
class Attempt:
    """One order of the members. `cards` replaces their policies for cards where it is not None."""

    fleet: dict[NodeName, NodeView]
    defaults: DefaultPolicies
    cards: PackingPolicy | None
    kinds: dict[Member, _Kind] = field(default_factory=dict)
    used: set[NodeName] = field(default_factory=set)
    cards_of: dict[NodeName, _GangCards] = field(default_factory=dict)

    def place(self, members: Sequence[Member]) -> Steps[dict[PodUid, MemberPlace]]:
        """Return the places of the members before the first one that fits nowhere."""
        places: dict[PodUid, MemberPlace] = {}
        for number, member in enumerate(members):
            kind = yield from self._kind(member)
            if not kind.fits:
                break
            name = yield from self._best(kind, len(members) - number)
            chosen = places[member.uid] = MemberPlace(name, kind.fits[name].assignment)
            yield from self._take(member, chosen)
        return places

    def _kind(self, member: Member) -> Steps[_Kind]:
        """Return a member's kind, judged on each node."""
        key = replace(member, uid=NO_POD)
        known = self.kinds.get(key)
        if known is None:
            known = self.kinds[key] = _Kind(key)
            for name in self.fleet:
                self._judge(known, name)
                yield
        return known

    def _best(self, kind: _Kind, rest: int) -> Steps[NodeName]:
        policy, names = self.defaults.node_policy_for(kind.member.request.options), set(kind.fits)
        if policy is PackingPolicy.TOPOLOGY:
            names = yield from self._near(kind, rest)
        costs = {name: kind.fits[name].cost for name in names}
        return rank.first(costs, POLICIES[policy].tolerance(self.defaults.demand.weights))

    def _near(self, kind: _Kind, rest: int) -> Steps[set[NodeName]]:
        """Return the nodes that keep the gang on few nodes: those in use, else those with room for the most members."""
        used = kind.fits.keys() & self.used
        if used:
            return used
        copies: dict[NodeName, int] = {}
        for name, fit in kind.fits.items():
            count = yield from self._copies(kind, name, fit)
            copies[name] = min(rest, count)
        most = max(copies.values())
        return {name for name, count in copies.items() if count == most}

    def _copies(self, kind: _Kind, name: NodeName, fit: _MemberFit) -> Steps[int]:
        """Return for how many equal members a node has room, at most `MAX_COUNTED`."""
        known = kind.copies.get(name)
        if known is not None and known[0] is fit.view:
            return known[1]
        member, count, cards = kind.member, 0, self.cards_of.get(name, _NO_CARDS)
        following: _MemberFit | None = fit
        while following is not None and count < MAX_COUNTED:
            count += 1
            cards = cards.with_pod(member.request, following.assignment)
            view = _with_member(following.view, member, following.assignment)
            following = self._fit(view, member, cards)
            yield
        kind.copies[name] = fit.view, count
        return count

    def _judge(self, kind: _Kind, name: NodeName) -> None:
        cards = self.cards_of.get(name, _NO_CARDS)
        fit = self._fit(self.fleet[name], kind.member, cards) if kind.member.may_use(name) else None
        if fit is None:
            kind.fits.pop(name, None)
        else:
            kind.fits[name] = fit

    def _fit(self, view: NodeView, member: Member, cards: _GangCards) -> _MemberFit | None:
        """Return how a member fits on a node on which other members have `cards`, None where it does not."""
        policy = self.cards or self.defaults.gpu_policy_for(member.request.options)
        placed = view.place(cards.request(member.request), policy, member.host)
        return _MemberFit(view, placed, self._cost(view, member)) if isinstance(placed, Assignment) else None

    def _cost(self, view: NodeView, member: Member) -> int:
        models, state = self.defaults.models, view.state
        ask = room.ask_of(member.request, member.host.cpu_milli, member.host.memory_mib, state.slice_mib, models)
        row = POLICIES[self.defaults.node_policy_for(member.request.options)]
        return row.cost(state, room.room_of(state, models), Question(ask, self.defaults.demand, models))

    def _take(self, member: Member, place: MemberPlace) -> Steps[None]:
        """Place a member, and judge all known kinds of members on its node again."""
        self.fleet[place.node] = _with_member(self.fleet[place.node], member, place.assignment)
        self.used.add(place.node)
        cards = self.cards_of.get(place.node, _NO_CARDS)
        self.cards_of[place.node] = cards.with_pod(member.request, place.assignment)
        for kind in self.kinds.values():
            self._judge(kind, place.node)
            yield


def _with_member(view: NodeView, member: Member, held: Assignment) -> NodeView:
    """Return a node after a member was placed on it; members are one job, so its cards are no other job's."""
    after = view.with_pod(member.request, held, member.host)
    return replace(after, state=replace(after.state, jobs=view.state.jobs))
