"""Jobs get the cards of another job, or none of them; compared with all sets of cards that fit."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from tests import strategies
from vgpu.domain.asks import request
from vgpu.domain.asks.policy import PackingPolicy
from vgpu.domain.asks.request import PodRequest
from vgpu.domain.cards.share import CardState, NodeState, Usage
from vgpu.domain.grants.assignment import Assignment
from vgpu.domain.identifiers import CardUuid, PodUid
from vgpu.placement import choose, explain, fit, gang, job_sets, packing
from vgpu.placement.costs import topology
from vgpu.placement.gang import Shortfall
from vgpu.placement.gang_attempt import Member
from vgpu.placement.policies import DefaultPolicies
from vgpu.placement.snapshot import NodeView

MIB = 512


def asked(gpus: int, mib: int = MIB) -> PodRequest:
    found = request.parse(strategies.pod(strategies.container(gpu_mem=gpus * mib, gpu=gpus))).request
    assert found is not None
    return found


def cards(*numbers: int) -> frozenset[CardUuid]:
    return frozenset(CardUuid(f"GPU-{number}") for number in numbers)


def node(used_mib: Sequence[int], jobs: Sequence[frozenset[CardUuid]], linked: int = 0) -> NodeState:
    """Cards of 2 GiB that hold this much; the first `linked` are joined by NVLink."""
    peers = [cards(*(m for m in range(linked) if m != n)) if n < linked else cards() for n in range(len(used_mib))]
    made = strategies.node_state(*(strategies.card(n, nvlink_peers=found) for n, found in enumerate(peers)))
    usages = (Usage(-(-mib // 256), mib, shares=bool(mib)) for mib in used_mib)
    states = tuple(state.with_usage(taken) for state, taken in zip(made.cards, usages, strict=True))
    return replace(made, cards=states, jobs=tuple(jobs))


def placed(wanted: PodRequest, state: NodeState, policy: PackingPolicy = PackingPolicy.BINPACK) -> frozenset[CardUuid]:
    found = choose.place(wanted, state, policy)
    assert isinstance(found, Assignment), found
    return found.gpus()


NODES = st.builds(
    node,
    st.lists(st.sampled_from([0, 256, 512, 1024, 2048]), min_size=2, max_size=6),
    st.lists(st.sets(st.integers(0, 5), min_size=2, max_size=4).map(lambda found: cards(*found)), max_size=3),
    st.integers(0, 3),
)
POLICIES = st.sampled_from([*PackingPolicy])


def fitting(wanted: PodRequest, state: NodeState) -> list[tuple[CardState, ...]]:
    """All sets of cards that have room."""
    need = packing.share(wanted, [wanted.anchor], state.slice_mib)
    free = [card for card in state.cards if fit.usage_refusal(card, need) is None]
    return list(combinations(free, wanted.anchor.gpus))


def naive_overlaps(chosen: frozenset[CardUuid], state: NodeState) -> int:
    """Jobs with at least one card in common and at least one card that only one of the two has."""
    return sum(any(card in job for card in chosen) and sorted(job) != sorted(chosen) for job in state.jobs)


def uuids(chosen: Sequence[CardState]) -> frozenset[CardUuid]:
    return frozenset(card.card.uuid for card in chosen)


@given(NODES, st.integers(2, 3), POLICIES)
def test_no_set_that_fits_overlaps_with_fewer_jobs(state: NodeState, gpus: int, policy: PackingPolicy) -> None:
    """Where the policy compares sets, none that is as good for it."""
    wanted, alone = asked(gpus), replace(state, jobs=())
    sets = fitting(wanted, state)
    if not sets:
        return
    if policy is PackingPolicy.TOPOLOGY:
        most = max(topology.goodness(chosen, state.links) for chosen in sets)
        sets = [chosen for chosen in sets if topology.goodness(chosen, state.links) == most]
    fewest = min(naive_overlaps(uuids(chosen), state) for chosen in sets)
    found = placed(wanted, state, policy)
    assert found in map(uuids, sets)
    assert naive_overlaps(found, state) == fewest
    if naive_overlaps(placed(wanted, alone, policy), state) == fewest:
        assert found == placed(wanted, alone, policy), "the policy's own choice is as good"


@given(NODES, st.sampled_from([{"gpu_mem": MIB}, {"gpu": 2}, {"gpu": 1}]), POLICIES)
def test_single_shares_and_whole_cards_are_placed_as_without_jobs(
    state: NodeState, amounts: dict[str, int], policy: PackingPolicy
) -> None:
    wanted = request.parse(strategies.pod(strategies.container(**amounts))).request
    assert wanted is not None
    assert choose.place(wanted, state, policy) == choose.place(wanted, replace(state, jobs=()), policy)


def test_a_second_job_gets_the_cards_of_the_first_or_others_but_not_one_of_each() -> None:
    assert placed(asked(2), node([512, 512, 512], [cards(1, 2)])) == cards(1, 2)
    assert placed(asked(2), node([2048, 512, 512, 0, 0], [cards(0, 1)])) == cards(2, 3)
    assert placed(asked(2), node([2048, 512, 512, 512], [cards(0, 1)])) == cards(2, 3)


def test_a_job_that_has_to_overlap_is_placed_and_the_explanation_says_with_whom() -> None:
    state = node([2048, 512, 512], [cards(0, 1)])
    assert placed(asked(2), state) == cards(1, 2)
    view = NodeView(state.name, state, None, {"vgpu.io/slice": 100})
    (verdict,) = explain.explain(asked(2), [view], PackingPolicy.BINPACK).nodes
    assert verdict.reason is None
    assert verdict.detail.startswith("the cards {1,2} are in part those of other jobs ({0,1}): they exclude each other")
    (alone,) = explain.explain(asked(2), [replace(view, state=node([0, 0, 0], []))], PackingPolicy.BINPACK).nodes
    assert alone.detail == ""


def test_jobs_that_are_placed_in_a_simulation_count_for_those_after_them() -> None:
    state = node([0, 0, 0, 0], [])
    view = NodeView(state.name, state, None, {"vgpu.io/slice": 100})
    sets = []
    for _ in range(4):  # each card has room for four
        found = view.place(asked(2), PackingPolicy.SPREAD)
        assert isinstance(found, Assignment)
        sets.append(found.gpus())
        view = view.with_pod(asked(2), found)
    assert all(first == second or not first & second for first, second in combinations(sets, 2))


def test_the_equal_set_is_found_on_nodes_with_more_sets_than_are_looked_at() -> None:
    """Sixteen cards have 12,870 sets of eight."""
    taken = [512] * 8 + [1024] * 8  # binpack takes the last ones
    first = cards(*range(0, 16, 2))
    assert placed(asked(8), node(taken, [first])) in (first, cards(*range(1, 16, 2)))
    assert job_sets.MAX_SETS < 12870


@given(NODES, st.integers(1, 4))
def test_jobs_of_others_take_no_room_from_a_gang(state: NodeState, count: int) -> None:
    """Members of two cards each; among themselves they are one job."""
    alone = replace(state, jobs=())
    members = [Member(PodUid(f"m{n}"), asked(2)) for n in range(count)]
    offered = {"vgpu.io/slice": 1000}
    plans = [gang.plan(members, [NodeView(one.name, one, None, offered)], DefaultPolicies()) for one in (state, alone)]
    assert [isinstance(found, Shortfall) for found in plans] in ([True, True], [False, False])
