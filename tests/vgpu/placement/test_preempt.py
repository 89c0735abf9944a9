"""Victims of preemption, compared with a search of all subsets."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import strategies
from vgpu.domain import names
from vgpu.domain.asks import request
from vgpu.domain.asks.policy import PackingPolicy
from vgpu.domain.asks.request import PodRequest
from vgpu.domain.cards.share import CardState, NodeState, Usage
from vgpu.domain.grants.assignment import Assignment
from vgpu.domain.identifiers import CardUuid, NodeName, PodUid
from vgpu.placement import choose, preempt
from vgpu.placement.preempt import Eviction, EvictionCandidate

SLICE = strategies.SLICE_MIB


def asking(**amounts: int | str) -> PodRequest:
    found = request.parse(strategies.pod(strategies.container(**amounts))).request
    assert found is not None
    return found


def share(uid: str, card: int, slices: int, **fields: Any) -> EvictionCandidate:
    taken = {CardUuid(f"GPU-{card}"): Usage(slices, slices * SLICE, fields.pop("cores", 0), shares=1)}
    return EvictionCandidate(PodUid(uid), usage=taken, devices={names.SLICE: slices}, **fields)


def node(candidates: Sequence[EvictionCandidate], *, cards: int = 1, others: int = 0) -> NodeState:
    """A node of cards with eight slices each; `others` slices of each card are held by pods that cannot be evicted."""
    held = EvictionCandidate(
        PodUid(""),
        usage={CardUuid(f"GPU-{n}"): Usage(others, others * SLICE, shares=1) for n in range(cards) if others},
    )
    states = []
    for n in range(cards):
        card = strategies.card(n, 8 * SLICE)
        taken = sum((candidate.usage.get(card.uuid, Usage()) for candidate in (*candidates, held)), Usage())
        states.append(CardState(replace(card, held_slices=taken.slices), SLICE, taken))
    devices = {names.SLICE: sum(candidate.devices.get(names.SLICE, 0) for candidate in candidates)}
    return NodeState(NodeName("n1"), SLICE, tuple(states), devices)


def evicted(found: Eviction | None) -> list[str] | None:
    return None if found is None else [victim.uid for victim in found.victims]


def search(asked: PodRequest, candidates: Sequence[EvictionCandidate], **layout: int) -> Eviction | None:
    state = node(candidates, **layout)
    return preempt.on_node(asked, state, PackingPolicy.BINPACK, candidates, {}, lambda _: True)


def test_the_fewest_pods_are_evicted() -> None:
    assert evicted(search(asking(gpu_mem=4 * SLICE), [share("a", 0, 2), share("b", 0, 2), share("c", 0, 4)])) == ["c"]


def test_a_low_priority_counts_more_than_few_pods() -> None:
    pods = [share("a", 0, 2, priority=1), share("b", 0, 2, priority=1), share("c", 0, 4, priority=2)]
    assert evicted(search(asking(gpu_mem=4 * SLICE), pods)) == ["b", "a"]


def test_of_equal_pods_the_youngest_is_evicted() -> None:
    pods = [share("old", 0, 4, started=1), share("young", 0, 4, started=3)]
    assert evicted(search(asking(gpu_mem=4 * SLICE), pods)) == ["young"]


def test_only_pods_of_one_card_are_evicted() -> None:
    pods = [share("a", 0, 4), share("b", 0, 4), share("c", 1, 5), share("d", 1, 3)]
    assert evicted(search(asking(gpu_mem=5 * SLICE), pods, cards=2)) == ["c"]


def test_no_pod_is_evicted_where_none_helps_or_none_must_leave() -> None:
    assert search(asking(gpu_mem=8 * SLICE), [share("a", 0, 4)], others=4) is None
    assert evicted(search(asking(gpu_mem=4 * SLICE), [share("a", 0, 4)])) == []


def test_compute_time_is_freed_too() -> None:
    pods = [share("a", 0, 1, cores=80), share("b", 0, 4, cores=20)]
    assert evicted(search(asking(gpu_mem=SLICE, gpu_cores=50), pods)) == ["a"]


def test_a_whole_card_needs_an_empty_card() -> None:
    pods = [share("a", 0, 1), share("b", 0, 1), share("c", 1, 8)]
    assert evicted(search(asking(gpu=1), pods, cards=2)) == ["c"]


def test_a_budget_is_kept_where_other_pods_can_leave() -> None:
    pods = [share("a", 0, 4, priority=1, budgets=("x",)), share("b", 0, 4, priority=2)]
    state = node(pods)
    found = preempt.on_node(asking(gpu_mem=4 * SLICE), state, PackingPolicy.BINPACK, pods, {"x": 0}, lambda _: True)
    assert found is not None
    assert (evicted(found), found.violations) == (["b"], 0)


def test_pods_that_the_kubelet_would_not_admit_evict_nobody() -> None:
    pods = [share("a", 0, 4), share("b", 0, 4)]
    found = preempt.on_node(
        asking(gpu_mem=4 * SLICE), node(pods), PackingPolicy.BINPACK, pods, {}, lambda used: used[names.SLICE] <= 0
    )
    assert evicted(found) == ["b", "a"]


@st.composite
def candidates(draw: st.DrawFn) -> list[EvictionCandidate]:
    def one(n: int) -> EvictionCandidate:
        budgets = tuple(draw(st.sets(st.sampled_from("xy"), max_size=1)))
        cores = draw(st.sampled_from((0, 20, 50)))
        card, slices = draw(st.integers(0, 1)), draw(st.integers(1, 4))
        priority, started = draw(st.integers(0, 2)), float(draw(st.integers(0, 3)))
        return share(f"u{n}", card, slices, cores=cores, priority=priority, started=started, budgets=budgets)

    return [one(n) for n in range(draw(st.integers(0, 6)))]


def grouped(pods: Sequence[EvictionCandidate], gangs: Sequence[int]) -> list[EvictionCandidate]:
    """Pods of gang 0 by themselves, the pods of each other gang as one candidate."""
    alone = [pod for pod, gang in zip(pods, gangs, strict=False) if not gang]
    ranks = [[pod for pod, gang in zip(pods, gangs, strict=False) if gang == n] for n in (1, 2)]
    return [*alone, *(preempt.together(members) for members in ranks if members)]


def test_the_pods_of_a_gang_leave_together_and_count_as_many() -> None:
    rank = [share("rank-0", 0, 4), share("rank-1", 1, 4)]
    singles = [share("a", 0, 4), share("b", 1, 4)]
    wanted = asking(gpu_mem=4 * SLICE)
    assert evicted(search(wanted, [preempt.together(rank), *singles], cards=2)) in (["a"], ["b"])
    found = search(wanted, [preempt.together(rank)], cards=2, others=4)
    assert found is not None
    assert sorted(found.uids) == ["rank-0", "rank-1"]
    assert found.cost[2] == 2


def brute_force(
    pods: Sequence[EvictionCandidate], fits: Callable[[Sequence[EvictionCandidate]], bool], allowed: Any
) -> Any:
    """The cheapest cost over all subsets; None where no subset helps."""
    subsets = itertools.chain.from_iterable(itertools.combinations(pods, n) for n in range(len(pods) + 1))
    return min((preempt.eviction(subset, allowed).cost for subset in subsets if fits(subset)), default=None)


@pytest.mark.heavy
@given(
    candidates(), st.lists(st.integers(0, 2), min_size=6, max_size=6),
    st.integers(1, 8), st.sampled_from((1, 2)), st.fixed_dictionaries({"x": st.integers(0, 2)}),
)  # fmt: skip
def test_the_search_finds_what_a_search_of_all_subsets_finds(
    pods: list[EvictionCandidate], gangs: list[int], slices: int, gpus: int, allowed: dict[str, int]
) -> None:
    pods = grouped(pods, gangs)
    asked = asking(gpu_mem=gpus * slices * SLICE, gpu=gpus, gpu_cores=gpus * 30)
    state = node(pods, cards=2)

    def fits(leaving: Sequence[EvictionCandidate]) -> bool:
        placed = choose.place(asked, preempt.without(state, leaving), PackingPolicy.BINPACK)
        return isinstance(placed, Assignment)

    found = preempt.on_node(asked, state, PackingPolicy.BINPACK, pods, allowed, lambda _: True)
    expected = brute_force(pods, fits, allowed)
    assert (None if found is None else found.cost) == expected
