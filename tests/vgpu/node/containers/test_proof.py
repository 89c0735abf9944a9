"""What is proven before a container starts: its assignment, its IDs and its limits."""

from dataclasses import replace

import pytest

from tests.strategies import container
from tests.vgpu.node.builders import SLICE_MIB, bound, plain, slices, uuid
from vgpu.domain import names
from vgpu.domain.asks.policy import ComputePolicy, MemoryPolicy
from vgpu.domain.formats.limits import CardLimit, Limits
from vgpu.domain.grants.assignment import Assignment
from vgpu.domain.grants.assignment_trust import DistrustReason
from vgpu.domain.identifiers import ContainerName
from vgpu.node.containers import proof
from vgpu.node.containers.bound_pod import BoundPod
from vgpu.node.containers.refusal import ContainerRefusal, NodeReason

GIB = 1 << 30


def refusal_reason(pod: BoundPod) -> str:
    result = proof.assignment_of(pod)
    return result.reason if isinstance(result, ContainerRefusal) else ""


def test_an_assignment_is_trusted_for_what_the_pod_asks() -> None:
    assert refusal_reason(bound("p")) == ""
    other = bound("q", container(gpu_mem=512))
    assert refusal_reason(replace(bound("p"), assignment=other.assignment)) == DistrustReason.FOREIGN_ASSIGNMENT


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
def test_a_pod_without_a_trusted_assignment_is_refused(pod: BoundPod, reason: NodeReason | DistrustReason) -> None:
    assert refusal_reason(pod) == reason


def mismatch(pod: BoundPod, ids: frozenset[str], name: str = "main") -> str:
    decided = proof.assignment_of(pod)
    assert isinstance(decided, Assignment)
    assert pod.parsed.request is not None
    refusal = proof.card_mismatch(pod.parsed.request, decided, ContainerName(name), ids, SLICE_MIB)
    return str(refusal or "")


def test_ids_must_be_on_the_assigned_cards_in_the_right_number() -> None:
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
    return proof.limits_for(request, request.containers[0], decided.containers[ContainerName("main")])


def test_limits_are_exact_and_per_card() -> None:
    pod = bound("p", container(gpu_mem=3072, gpu=3, gpu_cores=90), gpus={"main": (0, 1, 2)})
    assert limits(pod) == Limits(tuple(CardLimit(uuid(n), GIB, 30) for n in range(3)), ComputePolicy.FIXED)


def test_without_cores_the_policy_is_burst_with_zero_cores() -> None:
    assert limits(bound("p")) == Limits((CardLimit(uuid(0), GIB, 0),), ComputePolicy.BURST)


def test_annotations_set_the_limits_policies_and_priority() -> None:
    options = {names.COMPUTE_POLICY: "best-effort", names.PRIORITY: "7", names.MEMORY_POLICY: "spill"}
    pod = bound("p", container(gpu_mem=1024, gpu_cores=5), annotations=options)
    wanted = Limits((CardLimit(uuid(0), GIB, 5),), ComputePolicy.BEST_EFFORT, 7, MemoryPolicy.SPILL)
    assert limits(pod) == wanted


def test_a_whole_card_has_no_limit() -> None:
    pod = bound("p", container(gpu=1))
    assert limits(pod) == Limits((CardLimit(uuid(0), None, 100),), ComputePolicy.BURST)


def test_a_container_whose_volume_covers_the_limiter_is_refused() -> None:
    """Admission refuses such a pod too; an admission webhook after ours may have added the volume."""

    def refused(path: str, *names_of_started: str) -> str:
        covering = container(gpu_mem=1024) | {"volumeMounts": [{"name": "v", "mountPath": path}]}
        return str(
            proof.covered_files(
                bound("p", covering, container("side", gpu_mem=256)), [*map(ContainerName, names_of_started)]
            )
            or ""
        )

    assert refused("/data", "main") == ""
    assert refused("/etc/ld.so.preload", "side") == ""
    assert refused("/etc/ld.so.preload", "main") == (
        "FilesCovered: a volume covers the limiter's files: /etc/ld.so.preload in container main"
    )
    assert refused("/usr/local/vgpu/../vgpu", "side", "main")
