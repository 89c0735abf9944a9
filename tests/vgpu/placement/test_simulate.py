"""A simulation places each pod as filter, prioritize and bind would, one after the other."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import strategies
from vgpu.domain import names
from vgpu.domain.asks import request
from vgpu.domain.asks.host_request import HostRequest
from vgpu.domain.asks.policy import PackingPolicy
from vgpu.domain.asks.request import PodRequest
from vgpu.domain.cards.reasons import Reason
from vgpu.domain.cards.share import HostRoom
from vgpu.domain.grants.assignment import Assignment
from vgpu.domain.identifiers import NodeName
from vgpu.placement import rank
from vgpu.placement.policies import DefaultPolicies
from vgpu.placement.simulation import advice
from vgpu.placement.simulation.gangs import Ganged, GangLanding
from vgpu.placement.simulation.simulate import Landing, Wanted, simulate
from vgpu.placement.snapshot import NodeView

ROOM = {names.SLICE: 16, names.CARD: 2}


def fleet(count: int = 2) -> list[NodeView]:
    cards = (strategies.card(0), strategies.card(1))
    return [NodeView(NodeName(f"n{n}"), strategies.node_state(*cards, name=f"n{n}"), None, ROOM) for n in range(count)]


def asked(**amounts: int) -> PodRequest:
    parsed = request.parse(strategies.pod(strategies.container(**amounts))).request
    assert parsed is not None
    return parsed


AMOUNTS = st.sampled_from(
    [{"gpu_mem": 512}, {"gpu_mem": 1536, "gpu_cores": 60}, {"gpu": 1}, {"gpu_mem": 2048, "gpu": 2}]
)


@given(st.lists(AMOUNTS, max_size=12))
def test_it_agrees_with_one_placement_after_the_other(pods: list[dict[str, int]]) -> None:
    requests, views = [asked(**pod) for pod in pods], {node.name: node for node in fleet()}
    outcome = simulate(map(Wanted, requests), fleet(), DefaultPolicies())
    found = outcome.landings
    for wanted, landing in zip(requests, found, strict=True):
        placed = {name: view.place(wanted, PackingPolicy.BINPACK) for name, view in views.items()}
        fitting = {name: assignment for name, assignment in placed.items() if isinstance(assignment, Assignment)}
        if not fitting:
            assert landing.assignment is None
            continue
        best = rank.rank([views[name].state for name in fitting], PackingPolicy.BINPACK)[0]
        assert (landing.node, landing.assignment) == (best, fitting[best])
        views[best] = views[best].with_pod(wanted, fitting[best])
    assert outcome.views == views


def test_a_pod_that_fits_no_more_has_reasons_and_the_nearest_fit() -> None:
    pods = [Wanted(asked(gpu_mem=2048))] * 4 + [Wanted(asked(gpu_mem=512))]
    *_, last = simulate(pods, fleet(), DefaultPolicies()).landings
    assert dict(last.counts) == {Reason.CARD_INSUFFICIENT_MEMORY: 2}
    assert last.nearest is not None
    assert last.nearest.lacking_mib == 512


def test_the_kubelets_devices_are_counted_too() -> None:
    (node,) = fleet(1)
    small = NodeView(node.name, node.state, None, {names.SLICE: 2})
    first, second = simulate([Wanted(asked(gpu_mem=512))] * 2, [small], DefaultPolicies()).landings
    assert first.node == "n0"
    assert dict(second.counts) == {Reason.KUBELET_OFFERS_LESS: 1}


def test_cpu_and_host_memory_are_counted_as_kube_scheduler_counts_them() -> None:
    views = [replace(node, state=replace(node.state, host=HostRoom(1500, 1024))) for node in fleet(2)]
    share = asked(gpu_mem=512)
    pods = [Wanted(share, HostRequest(1000, 256))] * 3 + [Wanted(share, HostRequest(100, 800)), Wanted(share)]
    *placed, third, fourth, last = simulate(pods, views, DefaultPolicies()).landings
    assert {landing.node for landing in placed} == {"n0", "n1"}
    assert dict(third.counts) == {Reason.NODE_INSUFFICIENT_CPU: 2}
    assert third.nearest is None
    assert dict(fourth.counts) == {Reason.NODE_INSUFFICIENT_MEMORY: 2}
    assert last.node


def gang(name: str, size: int | None, count: int, **amounts: int) -> list[Wanted]:
    return [Wanted(asked(**amounts), gang=Ganged(name, size))] * count


def test_a_gang_is_placed_as_a_whole() -> None:
    found = simulate(gang("train", 4, 4, gpu=1), fleet(), DefaultPolicies()).landings
    assert sorted(landing.node for landing in found) == ["n0", "n0", "n1", "n1"]
    assert {landing.gang for landing in found} == {GangLanding("train", 4, 4)}


def test_a_gang_that_does_not_fit_is_placed_nowhere_and_leaves_the_room_to_others() -> None:
    pods = [*gang("train", None, 5, gpu=1), Wanted(asked(gpu=2))]
    *members, other = simulate(pods, fleet(), DefaultPolicies()).landings
    assert {(member.node, member.gang) for member in members} == {("", GangLanding("train", 5, 4))}
    assert {reason for member in members for reason in member.counts} == {Reason.GANG_INSUFFICIENT_CARDS}
    assert other.node


def test_of_a_gang_with_more_pods_than_its_size_the_others_are_placed_alone() -> None:
    found = simulate(gang("train", 3, 5, gpu=1), fleet(), DefaultPolicies()).landings
    assert [bool(landing.node) for landing in found] == [True] * 4 + [False]
    assert [landing.gang is not None for landing in found] == [True] * 3 + [False] * 2


def test_a_gang_with_fewer_pods_than_its_size_is_incomplete_and_one_whose_pods_fit_nowhere_says_why() -> None:
    (incomplete,) = {
        landing.gang: landing for landing in simulate(gang("a", 4, 2, gpu=1), fleet(), DefaultPolicies()).landings
    }
    assert incomplete == GangLanding("a", 4, 0)
    large = simulate(gang("b", 2, 2, gpu_mem=9999), fleet(), DefaultPolicies()).landings
    assert [dict(landing.counts) for landing in large] == [{Reason.CARD_TOO_SMALL: 2}] * 2


@pytest.mark.heavy
def test_the_work_for_advice_is_bounded_by_the_number_of_nodes() -> None:
    requests = [asked(gpu_mem=3000 + size) for size in range(7)]
    pods, landings = [Wanted(request) for request in requests], [Landing(judged=request) for request in requests]
    node = fleet()[0]
    for nodes, advised in ((1, 5), (2_500, 2), (6_000, 1)):
        views = [replace(node, name=NodeName(f"n{number}")) for number in range(nodes)]
        found = advice.advise(pods, landings, views, DefaultPolicies())
        assert [bool(advice) for advice in found] == [True] * advised + [False] * (7 - advised)
