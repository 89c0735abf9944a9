"""Pods on a real card, from `kubectl apply` to the end: placed by the extender, limited, measured from outside."""

import json
import os
import statistics
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from functools import partial

import pytest

from cluster.gpu_machine import image
from cluster.gpu_machine.cluster import GpuMachineCluster
from tests.e2e.pod_namespace import Share, held_slices, pod
from tests.gpu_cluster import metrics
from tests.gpu_cluster.gpu_namespace import (
    GpuNamespace,
    first_card,
    of_card,
    on_first_card,
    once,
    python_pod,
    used_mib,
    with_our_modules,
)
from tests.gpu_cluster.record import Sightings
from vgpu.domain import names

pytestmark = [pytest.mark.gpu_cluster, pytest.mark.timeout(600)]

MIB = 8192
CONTEXT_MIB = 1024  # at most: what CUDA and a framework take for themselves
KERNELS_S = 12.0
IMPORT_S = 20  # four programs import PyTorch at once
POINTS = 2.0  # of a hundred


def test_the_road_of_a_pod(namespace: GpuNamespace) -> None:
    """Annotated, placed, given its slices; CUDA and NVML inside show its share; the card is free again afterwards."""
    card = first_card(namespace)
    namespace.create(pod("road", gpu_mem=MIB, gpu_cores=30, annotations=on_first_card(namespace)))
    namespace.running("road")
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
    assert result["total"] <= MIB + 1  # JAX tells a part of it, in whole bytes
    assert len(outside) == 1
    assert 0 < sum(outside.values()) <= MIB


def rate_alone(namespace: GpuNamespace, program: str = "burn.py") -> float:
    """Kernels a second of a program that has the first card alone."""
    namespace.create_program("alone", program, "4", gpu_mem=2048, gpu_cores=100, annotations=on_first_card(namespace))
    rate: float = namespace.last("alone", 120)["rate"]
    namespace.delete("alone")
    return rate


def shares(namespace: GpuNamespace, asked: Sequence[tuple[str, int, dict[str, str]]]) -> dict[str, float]:
    """Run burners side by side; return the percent of one alone that each got, by its kernels."""
    alone = rate_alone(namespace)
    start = time.time() + IMPORT_S
    for name, cores, annotations in asked:
        arguments = "burn.py", str(KERNELS_S), str(start)
        share: Share = {"gpu_mem": 2048, "gpu_cores": cores} if cores else {"gpu_mem": 2048}
        namespace.create_program(name, *arguments, annotations=annotations | on_first_card(namespace), **share)
    return {name: 100 * namespace.last(name, 120)["rate"] / alone for name, _, _ in asked}


def policy(name: str) -> dict[str, str]:
    return {names.COMPUTE_POLICY: name}


@pytest.mark.parametrize("asked", [(20, 60), (10, 20, 25, 35)], ids=["two", "four"])
def test_pods_have_their_shares_by_their_kernels(
    namespace: GpuNamespace, seen: Sightings, asked: tuple[int, ...]
) -> None:
    got = shares(namespace, [(f"pod-{cores}", cores, policy("fixed")) for cores in asked])
    for cores in asked:
        percent = got[f"pod-{cores}"]
        is_met = abs(percent - cores) <= POINTS
        seen.figure(f"share {cores} of {len(asked)}", percent, "%", f"{cores} +- {POINTS:g}", is_met=is_met)
    assert got == {f"pod-{cores}": pytest.approx(cores, abs=POINTS) for cores in asked}, got


def test_best_effort_gets_what_burst_leaves(namespace: GpuNamespace, seen: Sightings) -> None:
    got = shares(namespace, [("burst", 70, policy("burst")), ("rest", 0, policy("best-effort"))])
    for name, percent in got.items():
        seen.figure(f"burst and best-effort {name}", percent, "%")
    assert got["burst"] >= 70 - POINTS, got
    assert sum(got.values()) >= 93, got


def test_diagnose_of_a_running_pod(namespace: GpuNamespace) -> None:
    """A program that its share holds back: the finding names the share."""
    namespace.create_program("held", "burn.py", "30", gpu_mem=4096, gpu_cores=20, annotations=policy("fixed"))
    namespace.has_printed("held", "ready")
    printed = vgpu_on_node(namespace, "diagnose", "--live", "held", "--seconds", "5", "-o", "json")
    assert "share-used-up" in printed


def test_a_limit_changes_while_a_program_runs(namespace: GpuNamespace) -> None:
    namespace.create(pod("resized", gpu_mem=MIB, gpu_cores=30))
    namespace.running("resized")
    assert seen_mib(namespace, "resized") == MIB
    listed = json.loads(vgpu_on_node(namespace, "top", "--once", "-o", "json"))
    (program,) = [row for row in listed if "resized" in row["name"]]
    for mib in (MIB // 2, MIB):
        vgpu_on_node(namespace, "set", program["id"], "--gpu-mem", str(mib))
        namespace.until(partial(sees, namespace, "resized", mib), f"{mib} MiB", 5)


def sees(namespace: GpuNamespace, name: str, mib: int) -> bool:
    return seen_mib(namespace, name) == mib


def seen_mib(namespace: GpuNamespace, name: str) -> int:
    """MiB of the card that nvidia-smi shows in a pod."""
    return int(namespace.run(name, "nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits"))


def vgpu_on_node(namespace: GpuNamespace, *arguments: str) -> str:
    """Run `vgpu` among the node's mounts and processes, where its regions are; return what it printed."""
    (node,) = namespace.cluster.nodes
    command = [sys.executable, "-m", "vgpu.cli", *arguments, "--state", "/var/lib/vgpu"]
    process = node.process(f"vgpu-{uuid.uuid4().hex[:8]}", command, {"PYTHONPATH": os.pathsep.join(sys.path)})
    process.start()
    status = process.wait(60)
    printed = process.log.read_text()
    assert status in (0, 1), f"vgpu {' '.join(arguments)}: {status}\n{printed}"
    return printed


@pytest.fixture
def short_periods(cluster: GpuMachineCluster) -> Iterator[None]:
    """A node that reports every five seconds, and an extender with a short grace time for idle pods."""
    cluster.plugins[0].restart("--usage-period=5")
    with cluster.extender_with(idle_grace="15"):
        yield
    cluster.plugins[0].restart()


@pytest.mark.usefixtures("short_periods")
def test_two_minutes_are_accounted_and_an_idle_pod_gives_its_card_back(
    namespace: GpuNamespace, seen: Sightings
) -> None:
    """Kernels, at the rate of a program alone, are the GPU time that the metrics count, within 1 percent."""
    cluster = namespace.cluster
    alone = rate_alone(namespace, "timed_kernels.py")
    idle = {names.IDLE_AFTER: "60s", names.IDLE_ACTION: "evict", **on_first_card(namespace)}
    namespace.create_program("idle", "fill.py", "cupy", "600", gpu_mem=4096, gpu_cores=10, annotations=idle)
    namespace.has_printed("idle", "sum", 120)
    started = time.monotonic()
    burner = {**policy("fixed"), **on_first_card(namespace)}
    namespace.create_program("burns", "timed_kernels.py", "120", gpu_mem=2048, gpu_cores=30, annotations=burner)
    namespace.has_printed("burns", "ready", 120)
    time.sleep(10)
    assert_the_metrics_say_what_nvml_says(namespace, "idle", "burns")
    namespace.until(lambda: "idle" not in namespace.phases(), "the idle pod is evicted", 120)
    assert time.monotonic() - started >= 75
    namespace.until(lambda: '"rate"' in namespace.log("burns"), "the burner has ended its loop", 120)
    used = metrics.of_pod(cluster, "burns", "vgpu_container_gpu_seconds_total")
    result = namespace.last("burns", 30)
    by_kernels = (result["kernels"] + 1) / alone
    ratio = used / by_kernels
    assert seen.figure("accounted", ratio, "ratio", "1 +- 0.01", is_met=0.99 <= ratio <= 1.01), (ratio, result, alone)


def assert_the_metrics_say_what_nvml_says(namespace: GpuNamespace, *pods: str) -> None:
    """Memory of each pod's process, and of the first card; `pods` are all that use the card."""
    cluster, card = namespace.cluster, first_card(namespace)["uuid"]
    found = namespace.until(lambda: used_mib() if len(used_mib()) == len(pods) else None, f"{len(pods)} processes", 10)
    counted = [metrics.of_pod(cluster, name, "vgpu_container_memory_nvml_bytes") / 2**20 for name in pods]
    assert sorted(counted) == pytest.approx(sorted(found.values()), abs=2)
    of_first = metrics.of_cards(cluster, "vgpu_card_memory_used_bytes")[card] / 2**20
    assert of_first == pytest.approx(of_card(card, "memory.used"), abs=64)


def test_hold_keeps_a_card_half_busy(namespace: GpuNamespace, seen: Sightings) -> None:
    manifest = python_pod("hold", "first_alloc.py", gpu_mem=4096, gpu_cores=100, annotations=on_first_card(namespace))
    arguments = ["-m", "vgpu.cli", "hold", "--target", "50", "--duration", "30"]
    manifest["spec"]["containers"][0]["command"] = [str(image.interpreter()), *arguments]
    namespace.create(with_our_modules(once(manifest)))
    namespace.running("hold")
    time.sleep(12)
    card = first_card(namespace)["uuid"]
    busy = []
    for _ in range(10):
        time.sleep(1)
        busy.append(of_card(card, "utilization.gpu"))
    mean = statistics.mean(busy)
    assert seen.figure("hold 50", mean, "%", "50 +- 8", is_met=42 <= mean <= 58), busy


def test_the_way_to_the_first_allocation(namespace: GpuNamespace, seen: Sightings) -> None:
    """Ours: what a pod with a share takes longer than one without, whose program only starts."""
    native = once(python_pod("native", "first_alloc.py"))
    native["spec"]["containers"][0]["command"][1:] = ["-c", "import time; print('{\"process\":', time.time(), '}')"]
    manifests = {"native": native, "share": once(python_pod("share", "first_alloc.py", gpu_mem=2048))}
    found: dict[str, list[dict[str, float]]] = {"native": [], "share": []}
    for number in range(3):
        for kind, manifest in manifests.items():
            began = time.time()
            namespace.create(manifest | {"metadata": manifest["metadata"] | {"name": f"{kind}-{number}"}})
            steps = namespace.last(f"{kind}-{number}", 60)
            found[kind].append({step: at - began for step, at in steps.items()})
    for step in found["share"][0]:
        seen.figure(f"first allocation {step}", statistics.median(steps[step] for steps in found["share"]), "s")
    ours = min(steps["process"] for steps in found["share"]) - min(steps["process"] for steps in found["native"])
    assert seen.figure("first allocation ours", ours, "s", "< 1", is_met=ours < 1), found
