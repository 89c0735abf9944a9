"""What is proven of a container before it starts."""

from dataclasses import replace

import pytest

from tests.strategies import container
from tests.vgpu.node.builders import SLICE_MIB, bound, plain, slices, uuid
from vgpu import names
from vgpu.assignment import Assignment
from vgpu.assignment_trust import DistrustReason
from vgpu.limits import CardLimit, Limits
from vgpu.node import proof
from vgpu.node.pods import BoundPod
from vgpu.node.refusal import NodeReason, Refusal
from vgpu.policy import ComputePolicy, MemoryPolicy

GIB = 1 << 30


def why(pod: BoundPod) -> str:
    answer = proof.assignment_of(pod)
    return answer.reason if isinstance(answer, Refusal) else ""


def test_an_assignment_is_trusted_for_what_the_pod_asks() -> None:
    assert why(bound("p")) == ""
    other = bound("q", container(gpu_mem=512))
    assert why(replace(bound("p"), assignment=other.assignment)) == DistrustReason.FOREIGN_ASSIGNMENT


@pytest.mark.parametrize(
    ("pod", "reason"),
    [
        (bound("p", gpus=None), DistrustReason.NO_ASSIGNMENT),
        (replace(bound("p"), assignment="{}"), DistrustReason.MALFORMED_ASSIGNMENT),
        (replace(bound("p"), is_mirror=True), NodeReason.STATIC_POD),
        (plain("p"), NodeReason.NOT_ADMITTED),
        (bound("p", container(gpu_mem=1024), annotations={names.COMPUTE_POLICY: "x"}), DistrustReason.INVALID_REQUEST),
    ],
    ids=str,
)
def test_what_nobody_decided_is_refused_by_name(pod: BoundPod, reason: NodeReason | DistrustReason) -> None:
    assert why(pod) == reason


def mismatch(pod: BoundPod, ids: frozenset[str], name: str = "main") -> str:
    decided = proof.assignment_of(pod)
    assert isinstance(decided, Assignment)
    assert pod.parsed.request is not None
    refusal = proof.card_mismatch(pod.parsed.request, decided, name, ids, SLICE_MIB)
    return str(refusal or "")


def test_ids_must_stand_on_the_assigned_cards_in_the_right_number() -> None:
    pod = bound("p", container(gpu_mem=2048, gpu=2), gpus={"main": (0, 2)})
    right = slices(0, 1, 2, 3, 4) | slices(2, 0, 5, 6, 7)
    assert mismatch(pod, right) == ""
    assert "4 of" in mismatch(pod, slices(0, 1, 2, 3, 4) | slices(1, 0, 5, 6, 7))
    assert mismatch(pod, slices(0, 0, 1, 2, 3, 4) | slices(2, 0, 5, 6))
    assert mismatch(pod, slices(0, 1, 2, 3, 4))
    assert mismatch(pod, right, name="other")


def test_a_whole_card_is_one_id() -> None:
    pod = bound("p", container(gpu=1), gpus=1)
    assert mismatch(pod, frozenset({uuid(1)})) == ""
    assert mismatch(pod, frozenset({uuid(0)}))


def limits(pod: BoundPod) -> Limits:
    decided, request = proof.assignment_of(pod), pod.parsed.request
    assert isinstance(decided, Assignment)
    assert request is not None
    return proof.limits_for(request, request.containers[0], decided.containers["main"])


def test_limits_are_exact_and_per_card() -> None:
    pod = bound("p", container(gpu_mem=3072, gpu=3, gpu_cores=90), gpus={"main": (0, 1, 2)})
    assert limits(pod) == Limits(tuple(CardLimit(uuid(n), GIB, 30) for n in range(3)), ComputePolicy.FIXED)


def test_without_cores_a_container_takes_turns_and_is_promised_nothing() -> None:
    assert limits(bound("p")) == Limits((CardLimit(uuid(0), GIB, 0),), ComputePolicy.BURST)


def test_wishes_reach_the_limits() -> None:
    options = {names.COMPUTE_POLICY: "best-effort", names.PRIORITY: "7", names.MEMORY_POLICY: "spill"}
    pod = bound("p", container(gpu_mem=1024, gpu_cores=5), annotations=options)
    wanted = Limits((CardLimit(uuid(0), GIB, 5),), ComputePolicy.BEST_EFFORT, 7, MemoryPolicy.SPILL)
    assert limits(pod) == wanted


def test_a_whole_card_has_no_limit() -> None:
    pod = bound("p", container(gpu=1))
    assert limits(pod) == Limits((CardLimit(uuid(0), None, 100),), ComputePolicy.BURST)
