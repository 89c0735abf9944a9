"""Which cards a pod gets; the oracle of the random test adds up by hand what was placed."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import SLICE_MIB, card, container, node_state, pod, share_pods
from vgpu.domain import names
from vgpu.domain.asks import request
from vgpu.domain.asks.policy import PackingPolicy
from vgpu.domain.asks.request import PodRequest
from vgpu.domain.cards.device import CardMode
from vgpu.domain.cards.reasons import UNRESOLVABLE, Reason
from vgpu.domain.cards.share import NodeState, Usage
from vgpu.domain.grants import usage
from vgpu.domain.grants.assignment import Assignment, Grant
from vgpu.domain.identifiers import CardUuid, ContainerName
from vgpu.placement import choose, fit
from vgpu.placement.choose import NodeRefusal

BINPACK, SPREAD = PackingPolicy.BINPACK, PackingPolicy.SPREAD


def request_of(obj: dict[str, Any]) -> PodRequest:
    parsed = request.parse(obj)
    assert parsed.request is not None
    assert parsed.problems == ()
    return parsed.request


def put(node: NodeState, chosen: Assignment, wanted: PodRequest) -> NodeState:
    used = usage.of_pod(chosen, wanted, node.slice_mib, node.card_slices)
    return replace(node, cards=tuple(s.with_usage(used.get(s.card.uuid, Usage())) for s in node.cards))


def placed(obj: dict[str, Any], node: NodeState, policy: PackingPolicy = BINPACK) -> Assignment:
    chosen = choose.place(request_of(obj), node, policy)
    assert isinstance(chosen, Assignment), chosen
    return chosen


def refused(obj: dict[str, Any], node: NodeState) -> NodeRefusal:
    result = choose.place(request_of(obj), node, BINPACK)
    assert isinstance(result, NodeRefusal), result
    return result


def loaded(*used_mib: int) -> NodeState:
    """A node whose cards of 2 GiB hold this much."""
    node = node_state(*(card(n) for n in range(len(used_mib))))
    usages = [Usage(-(-mib // SLICE_MIB), mib, shares=bool(mib)) for mib in used_mib]
    return replace(node, cards=tuple(s.with_usage(u) for s, u in zip(node.cards, usages, strict=True)))


def test_binpack_takes_the_tightest_card_and_spread_the_emptiest() -> None:
    node = loaded(0, 1024, 512, 2048)
    share = pod(container(gpu_mem=512))
    assert placed(share, node, BINPACK).containers[ContainerName("main")] == (Grant(CardUuid("GPU-1"), 512),)
    assert placed(share, node, SPREAD).containers[ContainerName("main")] == (Grant(CardUuid("GPU-0"), 512),)


def test_several_cards_are_different_cards() -> None:
    chosen = placed(pod(container(gpu_mem=3072, gpu_cores=240, gpu=3)), loaded(0, 0, 1536, 0))
    assert chosen.containers[ContainerName("main")] == tuple(Grant(CardUuid(f"GPU-{n}"), 1024, 80) for n in (0, 1, 3))


def test_a_whole_card_must_be_empty_and_takes_no_shares_afterwards() -> None:
    node = loaded(1, 0)
    whole = pod(container(gpu=1))
    chosen = placed(whole, node)
    assert chosen.containers[ContainerName("main")] == (Grant(CardUuid("GPU-1"), 2048, None, whole=True),)
    held = put(node, chosen, request_of(whole))
    assert refused(pod(container(gpu=1)), held).reason is Reason.CARD_IN_USE
    assert placed(pod(container(gpu_mem=1)), held).gpus() == {"GPU-0"}
    assert refused(pod(container(gpu_mem=2048)), held).cards == {
        "GPU-0": Reason.CARD_INSUFFICIENT_MEMORY,
        "GPU-1": Reason.CARD_HELD_WHOLE,
    }


def test_a_partial_last_slice_counts_as_one_slice_but_not_as_full_memory() -> None:
    node = node_state(card(0, memory_mib=1000))
    assert node.cards[0].total_slices == 4
    half = pod(container(gpu_mem=512))
    node = put(node, placed(half, node), request_of(half))
    assert node.cards[0].free_mib == 488
    assert refused(half, node).reason is Reason.CARD_INSUFFICIENT_MEMORY
    placed(pod(container(gpu_mem=488)), node)


def test_slices_that_the_kubelet_holds_are_not_free() -> None:
    node = node_state(card(0, held_slices=7))
    placed(pod(container(gpu_mem=256)), node)
    assert refused(pod(container(gpu_mem=257)), node).reason is Reason.CARD_INSUFFICIENT_MEMORY
    assert refused(pod(container(gpu=1)), node).reason is Reason.CARD_IN_USE


@pytest.mark.parametrize(
    ("fields", "amounts", "annotations", "reason"),
    [
        ({"healthy": False}, {"gpu_mem": 1}, {}, Reason.CARD_UNHEALTHY),
        ({"cordoned": True}, {"gpu_mem": 1}, {}, Reason.CARD_CORDONED),
        ({"mode": CardMode.EXCLUSIVE}, {"gpu_mem": 1}, {}, Reason.CARD_EXCLUSIVE),
        ({"mode": CardMode.UNKNOWN}, {"gpu": 1}, {}, Reason.CARD_MODE_UNSUPPORTED),
        ({}, {"gpu_mem": 2049}, {}, Reason.CARD_TOO_SMALL),
        ({}, {"gpu_mem": 2, "gpu": 2}, {}, Reason.NOT_ENOUGH_CARDS),
        ({}, {"gpu_mem": 1}, {names.USE_GPU_MODEL: "A100"}, Reason.GPU_MODEL_MISMATCH),
        ({}, {"gpu_mem": 1}, {names.AVOID_GPU_MODEL: "h100"}, Reason.GPU_MODEL_MISMATCH),
        ({}, {"gpu_mem": 1}, {names.USE_GPU_UUID: "GPU-9"}, Reason.GPU_UUID_MISMATCH),
        ({}, {"gpu_mem": 1}, {names.AVOID_GPU_UUID: "GPU-0"}, Reason.GPU_UUID_MISMATCH),
    ],
)
def test_each_refusal_has_its_reason(
    fields: dict[str, Any], amounts: dict[str, int], annotations: dict[str, str], reason: Reason
) -> None:
    refusal = refused(pod(container(**amounts), annotations=annotations), node_state(card(0, **fields)))
    assert refusal.reason is reason
    assert reason in UNRESOLVABLE


def test_a_reason_that_waiting_can_cure_takes_precedence() -> None:
    full = node_state(card(0, held_slices=8), card(1, healthy=False), card(2, healthy=False))
    refusal = refused(pod(container(gpu_mem=256)), full)
    assert refusal.reason is Reason.CARD_INSUFFICIENT_MEMORY
    assert refusal.reason not in UNRESOLVABLE


@pytest.mark.parametrize(
    ("closed", "reason"), [({"cordoned": True}, Reason.CARD_CORDONED), ({"healthy": False}, Reason.CARD_UNHEALTHY)]
)
def test_a_card_that_an_administrator_can_open_is_named_before_cards_that_do_not_match(
    closed: dict[str, bool], reason: Reason
) -> None:
    node = node_state(card(0), card(1, **closed), card(2))
    named = pod(container(gpu_mem=100), annotations={names.USE_GPU_UUID: "GPU-1"})
    large = pod(container(gpu_mem=5000))
    mixed = node_state(card(0), card(1, 8192, **closed), card(2))
    for obj, state in ((named, node), (large, mixed)):
        assert refused(obj, state).reason is reason


def test_best_effort_uses_no_cores() -> None:
    node = node_state(card(0))
    first = pod(container(gpu_mem=256, gpu_cores=100))
    node = put(node, placed(first, node), request_of(first))
    assert refused(pod(container(gpu_mem=256, gpu_cores=1)), node).reason is Reason.CARD_INSUFFICIENT_CORES
    placed(pod(container(gpu_mem=256)), node)
    placed(pod(container(gpu_mem=256, gpu_cores=50), annotations={names.COMPUTE_POLICY: "best-effort"}), node)


@pytest.mark.heavy
@given(st.lists(share_pods(), max_size=8))
def test_no_card_ever_exceeds_its_capacity(pods: list[dict[str, Any]]) -> None:
    node = node_state(card(0), card(1, memory_mib=1000), card(2))
    held: list[tuple[PodRequest, Assignment]] = []
    for obj in pods:
        wanted = request_of(obj)
        chosen = choose.place(wanted, node, wanted.options.gpu_policy or BINPACK)
        if isinstance(chosen, Assignment):
            assert chosen.answers(wanted)
            assert fit.has_room_for(node, chosen, wanted)
            node = put(node, chosen, wanted)
            held.append((wanted, chosen))
    for state in node.cards:
        app_mib = sum(
            grant.memory_mib
            for wanted, chosen in held
            for c in wanted.containers
            if c.kind is not request.ContainerKind.INIT
            for grant in chosen.containers[c.name]
            if grant.gpu == state.card.uuid
        )
        assert app_mib <= state.card.memory_mib
        assert state.usage.memory_mib <= state.card.memory_mib
        assert state.usage.slices <= state.total_slices
        assert state.usage.cores <= 100


@given(share_pods())
def test_init_containers_use_the_anchors_cards_and_placement_is_deterministic(obj: dict[str, Any]) -> None:
    node = node_state(card(0), card(1), card(2))
    wanted = request_of(obj)
    chosen = choose.place(wanted, node, BINPACK)
    assert chosen == choose.place(wanted, node, BINPACK)
    if isinstance(chosen, Assignment):
        anchor = [grant.gpu for grant in chosen.containers[wanted.anchor.name]]
        for asked_for in wanted.containers:
            if asked_for.kind is request.ContainerKind.INIT:
                assert [grant.gpu for grant in chosen.containers[asked_for.name]] == anchor
