"""A simulation places each pod as filter, prioritize and bind would, one after the other."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests import strategies
from vgpu import names, request
from vgpu.assignment import Assignment
from vgpu.host_request import HostRequest
from vgpu.placement import rank
from vgpu.placement.policies import DefaultPolicies
from vgpu.placement.simulate import Wanted, simulate
from vgpu.placement.snapshot import NodeView
from vgpu.policy import PackingPolicy
from vgpu.reasons import Reason
from vgpu.request import PodRequest
from vgpu.share import HostRoom

ROOM = {names.SLICE: 16, names.CARD: 2}


def fleet(count: int = 2) -> list[NodeView]:
    cards = (strategies.card(0), strategies.card(1))
    return [NodeView(f"n{n}", strategies.node_state(*cards, name=f"n{n}"), None, ROOM) for n in range(count)]


def asked(**amounts: int) -> PodRequest:
    parsed = request.parse(strategies.pod(strategies.container(**amounts))).request
    assert parsed is not None
    return parsed


AMOUNTS = st.sampled_from(
    [{"gpu_mem": 512}, {"gpu_mem": 1536, "gpu_cores": 60}, {"gpu": 1}, {"gpu_mem": 2048, "gpu": 2}]
)


@given(st.lists(AMOUNTS, max_size=12))
def test_it_agrees_with_one_placement_after_the_other(pods: list[dict[str, int]]) -> None:
    requests, views = [asked(**each) for each in pods], {each.name: each for each in fleet()}
    outcome = simulate(map(Wanted, requests), fleet(), DefaultPolicies())
    found = outcome.landings
    for wanted, landing in zip(requests, found, strict=True):
        placed = {name: each.place(wanted, PackingPolicy.BINPACK) for name, each in views.items()}
        fitting = {name: each for name, each in placed.items() if isinstance(each, Assignment)}
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
    views = [replace(each, state=replace(each.state, host=HostRoom(1500, 1024))) for each in fleet(2)]
    share = asked(gpu_mem=512)
    pods = [Wanted(share, HostRequest(1000, 256))] * 3 + [Wanted(share, HostRequest(100, 800)), Wanted(share)]
    *placed, third, fourth, last = simulate(pods, views, DefaultPolicies()).landings
    assert {each.node for each in placed} == {"n0", "n1"}
    assert dict(third.counts) == {Reason.NODE_INSUFFICIENT_CPU: 2}
    assert third.nearest is None
    assert dict(fourth.counts) == {Reason.NODE_INSUFFICIENT_MEMORY: 2}
    assert last.node
