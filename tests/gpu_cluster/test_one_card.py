"""Pods on a real card, from `kubectl apply` to the end: placed by the extender, limited, measured from outside."""

import json
import time
from collections.abc import Sequence

import pytest

from tests.e2e.control_plane.test_admin import vgpu
from tests.e2e.pod_namespace import Document, held_slices
from tests.gpu_cluster.gpu_namespace import GpuNamespace, python_pod, used_mib
from vgpu.domain import names

pytestmark = [pytest.mark.gpu_cluster, pytest.mark.timeout(600)]

MIB = 8192
CONTEXT_MIB = 1024  # at most: what CUDA and a framework take for themselves
KERNELS_S = 12.0
POINTS = 2.0  # of a hundred


def cards(namespace: GpuNamespace) -> list[Document]:
    """The cards that the node's GPUNode lists."""
    (node,) = namespace.cluster.api.get(names.GPUNODES_PATH)["items"]
    found: list[Document] = node["status"]["cards"]
    return found


def test_the_road_of_a_pod(namespace: GpuNamespace) -> None:
    """Annotated, placed, given its slices; CUDA and NVML inside show its share; the card is free again afterwards."""
    manifest = python_pod("road", "burn.py", "0.1", gpu_mem=MIB, gpu_cores=30)
    manifest["spec"]["containers"][0]["command"] = ["sh", "-c", "trap 'exit 0' TERM; sleep 1000000 & wait"]
    namespace.create(manifest)
    namespace.running("road")
    card = cards(namespace)[0]
    assert namespace.assignment("road").gpus() == {card["uuid"]}
    assert held_slices(namespace.cluster) == {card["uuid"]: MIB // 256}
    listed = namespace.run("road", "nvidia-smi", "--query-gpu=uuid,memory.total", "--format=csv,noheader,nounits")
    assert listed.strip().split(", ") == [card["uuid"], str(MIB)]
    (line,) = namespace.probe("road", "info")
    assert [shown["total"] for shown in line["cuda"]] == [MIB << 20]
    assert [shown["total"] for shown in line["nvml"]] == [MIB << 20]
    namespace.delete("road")
    namespace.until(lambda: not held_slices(namespace.cluster), "the card is free", 20)


@pytest.mark.parametrize("framework", ["torch", "cupy", "jax"])
def test_a_framework_gets_its_limit_and_no_more(namespace: GpuNamespace, framework: str) -> None:
    """What it gets by its own count, and what NVML says of its process from outside of every container."""
    namespace.create_program("fill", "fill.py", framework, "15", gpu_mem=MIB, gpu_cores=30)
    namespace.has_printed("fill", '"sum"', 120)
    outside = used_mib()
    result = namespace.printed("fill", 60)[-1]
    assert result["refused"]
    assert result["sum"] == 1000.0
    assert MIB - 2 * CONTEXT_MIB <= result["got"] <= MIB
    assert result["total"] <= MIB
    assert len(outside) == 1
    assert 0 < sum(outside.values()) <= MIB


def shares(namespace: GpuNamespace, asked: Sequence[tuple[str, int, dict[str, str]]]) -> dict[str, float]:
    """Run burners side by side; return the percent of one alone that each got, by its kernels."""
    namespace.create_program("alone", "burn.py", "3", gpu_mem=2048, gpu_cores=100)
    alone = namespace.last("alone", 120)["rate"]
    namespace.delete("alone")
    start = time.time() + 25
    for name, cores, annotations in asked:
        namespace.create_program(
            name, "burn.py", str(KERNELS_S), str(start), gpu_mem=2048, gpu_cores=cores, annotations=annotations
        )
    return {name: 100 * namespace.last(name, 120)["rate"] / alone for name, _, _ in asked}


def policy(name: str) -> dict[str, str]:
    return {names.COMPUTE_POLICY: name}


def test_two_pods_have_their_shares_by_their_kernels(namespace: GpuNamespace) -> None:
    got = shares(namespace, [("small", 20, policy("fixed")), ("large", 60, policy("fixed"))])
    assert got == {"small": pytest.approx(20, abs=POINTS), "large": pytest.approx(60, abs=POINTS)}, got


def test_four_pods_have_their_shares_by_their_kernels(namespace: GpuNamespace) -> None:
    got = shares(namespace, [(f"pod-{cores}", cores, policy("fixed")) for cores in (10, 20, 25, 35)])
    assert got == {f"pod-{cores}": pytest.approx(cores, abs=POINTS) for cores in (10, 20, 25, 35)}, got


def test_best_effort_gets_what_burst_leaves(namespace: GpuNamespace) -> None:
    got = shares(namespace, [("burst", 70, policy("burst")), ("rest", 0, policy("best-effort"))])
    assert got["burst"] >= 70 - POINTS, got
    assert sum(got.values()) >= 93, got


def test_diagnose_of_a_running_pod(namespace: GpuNamespace) -> None:
    namespace.create_program("burns", "burn.py", "40", gpu_mem=4096, gpu_cores=30)
    namespace.has_printed("burns", "ready")
    code, output = vgpu(namespace.cluster, "admin", "get", "pods", "-n", namespace.name, "-o", "json")
    assert code == 0, output
    (row,) = json.loads(output)["items"]
    assert row["name"] == "burns"
