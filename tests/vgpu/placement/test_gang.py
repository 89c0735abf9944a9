"""A gang is planned whole or not at all, and never beyond what the cards have."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import strategies
from vgpu.domain import names
from vgpu.domain.asks import request
from vgpu.domain.asks.host_request import HostRequest
from vgpu.domain.asks.policy import GangCards, PackingPolicy, PodOptions
from vgpu.domain.asks.request import PodRequest
from vgpu.domain.cards.share import HostRoom
from vgpu.domain.grants.assignment import Assignment
from vgpu.domain.identifiers import NodeName, PodUid
from vgpu.placement import fit, gang
from vgpu.placement.gang import Shortfall
from vgpu.placement.gang_attempt import Member, MemberPlace
from vgpu.placement.policies import DefaultPolicies
from vgpu.placement.snapshot import NodeView

DEFAULTS = DefaultPolicies()


def asked(policy: PackingPolicy | None = None, **amounts: int) -> PodRequest:
    parsed = request.parse(strategies.pod(strategies.container(**amounts))).request
    assert parsed is not None
    return replace(parsed, options=PodOptions(node_policy=policy))


def members(count: int, wanted: PodRequest, **fields: HostRequest | frozenset[str]) -> list[Member]:
    return [Member(f"m{n}", wanted, **fields) for n in range(count)]  # type: ignore[arg-type]


def view(name: str, cards: int = 2, host: HostRoom | None = None) -> NodeView:
    state = strategies.node_state(*(strategies.card(n) for n in range(cards)), name=name)
    state = replace(state, host=host) if host else state
    return NodeView(NodeName(name), state, None, {names.SLICE: 8 * cards, names.CARD: cards})


def fleet(*cards: int) -> list[NodeView]:
    return [view(f"n{n}", count) for n, count in enumerate(cards)]


def nodes(found: dict[PodUid, MemberPlace] | Shortfall) -> list[str]:
    assert isinstance(found, dict), found
    return [place.node for place in found.values()]


def load(views: Sequence[NodeView], pods: Sequence[PodRequest]) -> list[NodeView]:
    """Place pods on the first nodes that take them."""
    fleet = list(views)
    for wanted in pods:
        for n, node_view in enumerate(fleet):
            placed = node_view.place(wanted, PackingPolicy.BINPACK)
            if isinstance(placed, Assignment):
                fleet[n] = node_view.with_pod(wanted, placed)
                break
    return fleet


AMOUNTS = st.sampled_from(
    [
        {"gpu_mem": 256}, {"gpu_mem": 768, "gpu_cores": 40}, {"gpu_mem": 1280, "gpu_cores": 60}, {"gpu": 1},
        {"gpu_mem": 2048, "gpu": 2}, {"gpu": 2}, {"gpu_mem": 1536, "gpu": 3},
    ]
)  # fmt: skip
REQUESTS = st.builds(lambda policy, amounts: asked(policy, **amounts), st.sampled_from([None, *PackingPolicy]), AMOUNTS)
FLEETS = st.builds(
    lambda cards, pods: load(fleet(*cards), pods),
    st.lists(st.integers(1, 4), min_size=1, max_size=4),
    st.lists(REQUESTS, max_size=6),
)


def test_three_members_of_60_percent_fit_on_three_cards_and_four_do_not() -> None:
    wanted = asked(gpu_mem=256, gpu_cores=60)
    assert sorted(nodes(gang.plan(members(3, wanted), fleet(2, 1), DEFAULTS))) == ["n0", "n0", "n1"]
    assert gang.plan(members(4, wanted), fleet(2, 1), DEFAULTS) == Shortfall(3)


@given(st.lists(REQUESTS, min_size=1, max_size=8), FLEETS)
def test_a_plan_has_every_member_and_each_fits_beside_the_others(
    wanted: list[PodRequest], views: list[NodeView]
) -> None:
    asked_for = [Member(PodUid(f"m{n}"), pod_request) for n, pod_request in enumerate(wanted)]
    found = gang.plan(asked_for, views, DEFAULTS)
    if isinstance(found, Shortfall):
        assert found.placed < len(asked_for)
        return
    assert found.keys() == {member.uid for member in asked_for}
    left = {node_view.name: node_view for node_view in views}
    for member in asked_for:
        place = found[member.uid]
        node = left[place.node]
        assert fit.has_room_for(node.state, place.assignment, member.request)
        left[place.node] = node.with_pod(member.request, place.assignment)
        for state in left[place.node].state.cards:
            assert state.usage.memory_mib <= state.card.memory_mib
            assert state.usage.cores <= 100
            assert state.usage.wholes + (state.usage.shares > 0) <= 1


@given(st.lists(REQUESTS, min_size=1, max_size=5), FLEETS)
def test_the_order_of_the_nodes_does_not_matter(wanted: list[PodRequest], views: list[NodeView]) -> None:
    asked_for = [Member(PodUid(f"m{n}"), pod_request) for n, pod_request in enumerate(wanted)]
    assert gang.plan(asked_for, views, DEFAULTS) == gang.plan(asked_for, views[::-1], DEFAULTS)


@given(AMOUNTS, FLEETS, st.sampled_from([None, *PackingPolicy]))
def test_equal_members_are_placed_as_long_as_the_nodes_have_room(
    amounts: dict[str, int], views: list[NodeView], policy: PackingPolicy | None
) -> None:
    """The room of each node is counted by itself: the most pods of equal size on sets of different cards."""
    wanted = asked(policy, **amounts)
    room = sum(most_on(node_view, wanted) for node_view in views)
    if room:
        assert isinstance(gang.plan(members(room, wanted), views, DEFAULTS), dict)
    assert isinstance(gang.plan(members(room + 1, wanted), views, DEFAULTS), Shortfall)


def most_on(node: NodeView, wanted: PodRequest) -> int:
    """The most equal pods on a node: m pods of k cards fit if the cards have room for k m shares, m a card at most."""
    (container,) = wanted.containers
    shares = []
    for state in node.state.cards:
        if container.whole:
            shares.append(int(state.is_empty))
        else:
            slices = wanted.slices(container, 256)
            time = state.free_cores // container.cores if container.cores else 99
            shares.append(min(state.free_slices // slices, state.free_mib // container.memory_mib, time))
    return max(m for m in range(100) if sum(min(share, m) for share in shares) >= m * container.gpus)


def test_cards_are_chosen_so_that_all_members_fit() -> None:
    """The policy's tightest cards would leave room on one card only, for the second member."""
    views = load(fleet(3), [asked(gpu_mem=1024), asked(gpu_mem=2048 - 512), asked(gpu_mem=1024)])
    wanted = asked(gpu_mem=1024, gpu=2)  # 512 MiB on each of two cards
    assert most_on(views[0], wanted) == len(
        nodes(gang.plan(members(most_on(views[0], wanted), wanted), views, DEFAULTS))
    )


def test_the_largest_member_is_placed_first_where_the_order_given_fails() -> None:
    asked_for = [
        Member(PodUid("small"), asked(PackingPolicy.SPREAD, gpu_mem=256)),
        Member(PodUid("large"), asked(gpu=2)),
    ]
    found = gang.plan(asked_for, fleet(2, 1), DEFAULTS)
    assert isinstance(found, dict)
    assert {uid: place.node for uid, place in found.items()} == {"large": "n0", "small": "n1"}


def test_a_gang_with_the_topology_policy_stays_on_few_nodes() -> None:
    views = load(fleet(1, 2, 4, 3), [])
    assert set(nodes(gang.plan(members(4, asked(PackingPolicy.TOPOLOGY, gpu=1)), views, DEFAULTS))) == {"n2"}
    assert set(nodes(gang.plan(members(3, asked(PackingPolicy.TOPOLOGY, gpu=1)), views, DEFAULTS))) == {"n3"}
    assert sorted(set(nodes(gang.plan(members(7, asked(PackingPolicy.TOPOLOGY, gpu=1)), views, DEFAULTS)))) == [
        "n2",
        "n3",
    ]


def test_cpu_memory_and_the_nodes_that_a_member_may_use_are_limits() -> None:
    wanted = asked(gpu_mem=256)
    views = [view("n0", host=HostRoom(4000, 4096)), view("n1")]
    host = HostRequest(cpu_milli=3000, memory_mib=1024)
    assert max(nodes(gang.plan(members(3, wanted, host=host), views, DEFAULTS))) == "n1"
    assert gang.plan(members(3, wanted, host=host, nodes=frozenset({"n0"})), views, DEFAULTS) == Shortfall(1)


def apart(wanted: PodRequest) -> PodRequest:
    return replace(wanted, options=replace(wanted.options, gang_cards=GangCards.OWN))


@pytest.mark.heavy
@given(st.lists(st.tuples(REQUESTS, st.booleans()), min_size=1, max_size=6), FLEETS)
def test_no_other_member_is_on_a_card_of_a_member_that_wants_cards_of_its_own(
    wanted: list[tuple[PodRequest, bool]], views: list[NodeView]
) -> None:
    asked_for = [Member(PodUid(f"m{n}"), apart(one) if own else one) for n, (one, own) in enumerate(wanted)]
    found = gang.plan(asked_for, views, DEFAULTS)
    if isinstance(found, Shortfall):
        return
    held = [(place.node, place.assignment.gpus()) for place in (found[member.uid] for member in asked_for)]
    for n, (_, own) in enumerate(wanted):
        others = [cards for m, (node, cards) in enumerate(held) if m != n and node == held[n][0]]
        assert not own or not held[n][1] & frozenset().union(*others)


@given(AMOUNTS, FLEETS, st.sampled_from([None, *PackingPolicy]))
def test_as_many_members_of_one_card_each_are_placed_apart_as_cards_have_room(
    amounts: dict[str, int], views: list[NodeView], policy: PackingPolicy | None
) -> None:
    """The naive count: one member for each card on which it fits by itself."""
    wanted = apart(asked(policy, **amounts))
    if wanted.anchor.gpus > 1:
        return
    room = sum(len(cards_that_fit(node_view, wanted)) for node_view in views)
    if room:
        assert isinstance(gang.plan(members(room, wanted), views, DEFAULTS), dict)
    assert gang.plan(members(room + 1, wanted), views, DEFAULTS) == Shortfall(room)


def cards_that_fit(node: NodeView, wanted: PodRequest) -> list[str]:
    """The cards that take a pod of one card, each tried as the only one of the node."""
    alone = [(card, replace(node, state=replace(node.state, cards=(card,)))) for card in node.state.cards]
    return [card.card.uuid for card, one in alone if isinstance(one.place(wanted, PackingPolicy.BINPACK), Assignment)]


def test_two_halves_of_a_gang_share_a_card_unless_they_want_cards_of_their_own() -> None:
    half = asked(gpu_mem=512, gpu_cores=50)
    found = gang.plan(members(2, half), fleet(2), DEFAULTS)
    assert isinstance(found, dict)
    assert len({card for place in found.values() for card in place.assignment.gpus()}) == 1
    found = gang.plan(members(2, apart(half)), fleet(2), DEFAULTS)
    assert isinstance(found, dict)
    assert len({card for place in found.values() for card in place.assignment.gpus()}) == 2
    assert gang.plan(members(3, apart(half)), fleet(2), DEFAULTS) == Shortfall(2)
