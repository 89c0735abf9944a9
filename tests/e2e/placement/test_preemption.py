"""Preemption: a pod of higher priority takes the cards of pods of lower priority, and no other pod is evicted."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from cluster.cluster import GpuCluster
from tests.e2e.pod_namespace import FOREVER, PodNamespace, container, pod
from vgpu.domain import names

pytestmark = pytest.mark.e2e

GIB = 1024
PRIORITIES = {"vgpu-test-low": 5, "vgpu-test-middle": 10, "vgpu-test-high": 1000}
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
SETTLED_S = 15.0  # a decision not to preempt is watched for this long
MAX_CALLS = 20  # of filter in SETTLED_S: kube-scheduler's back-off, and a few events of the cluster


@pytest.fixture(autouse=True)
def classes(cluster: GpuCluster) -> Iterator[None]:
    for name, value in PRIORITIES.items():
        cluster.api.create(CLASSES, {"metadata": {"name": name}, "value": value})
    yield
    for name in PRIORITIES:
        cluster.api.delete(f"{CLASSES}/{name}")


def ranked(manifest: dict[str, Any], priority: str, *, node: str = "") -> dict[str, Any]:
    """Give a pod a PriorityClass and, where `node` is given, a node that it must run on."""
    manifest["spec"]["priorityClassName"] = f"vgpu-test-{priority}"
    if node:
        manifest["spec"]["nodeSelector"] = {"kubernetes.io/hostname": node}
    return manifest


def on_card(cluster: GpuCluster, name: str, priority: str, gib: int, *, cpu: str = "") -> dict[str, Any]:
    """A pod with a share of the first card of the first node."""
    annotations = {names.USE_GPU_UUID: cluster.nodes[0].cards[0].uuid}
    main = container(limits={"cpu": cpu} if cpu else {}, gpu_mem=gib * GIB)
    return ranked(pod(name, main, annotations=annotations), priority)


def bystander(cluster: GpuCluster, *, cpu: str = "10m") -> dict[str, Any]:
    """A pod without a GPU, of the lowest priority, on the first node."""
    main = {**container(command=FOREVER), "resources": {"requests": {"cpu": cpu}}}
    return ranked(pod("bystander", main), "low", node=cluster.nodes[0].name)


def left(namespace: PodNamespace) -> set[str]:
    """The pods that exist and are not being deleted."""
    return {p["metadata"]["name"] for p in namespace.all() if "deletionTimestamp" not in p["metadata"]}


def most_of_the_cpu(cluster: GpuCluster) -> str:
    allocatable = cluster.api.get(f"/api/v1/nodes/{cluster.nodes[0].name}")["status"]["allocatable"]["cpu"]
    return f"{int(allocatable) * 1000 - 200}m"


def test_the_fewest_lowest_and_youngest_pods_make_room(cluster: GpuCluster, namespace: PodNamespace) -> None:
    namespace.create(bystander(cluster))
    for name, priority in (("old", "middle"), ("low", "low"), ("older", "middle"), ("young", "middle")):
        namespace.create(on_card(cluster, name, priority, 20))
        namespace.running(name)
        time.sleep(1.1)  # start times have seconds
    namespace.running("bystander")
    namespace.create(on_card(cluster, "high", "high", 30))
    namespace.running("high", within_s=20)
    assert left(namespace) == {"bystander", "old", "older", "high"}


def has_place(manifest: dict[str, Any], node: str) -> bool:
    """Whether a node is nominated for a pod, or has it: a late write of kube-scheduler's may undo the nomination."""
    return node in (manifest["status"].get("nominatedNodeName"), manifest["spec"].get("nodeName"))


def test_the_freed_card_is_not_taken_by_a_pod_of_lower_priority(cluster: GpuCluster, namespace: PodNamespace) -> None:
    slow = on_card(cluster, "slow", "low", 80)
    slow["spec"]["terminationGracePeriodSeconds"] = 8
    slow["spec"]["containers"][0]["command"] = ["/bin/sh", "-c", "trap '' TERM; while true; do sleep 1; done"]
    namespace.create(slow)
    namespace.running("slow")
    for n in range(4):
        namespace.create(on_card(cluster, f"waiting-{n}", "low", 80))
    namespace.create(on_card(cluster, "high", "high", 70))
    namespace.until(lambda: "slow" not in left(namespace), "the victim is being deleted")
    namespace.until(lambda: has_place(namespace.get("high"), cluster.nodes[0].name), "the card is kept for the pod")
    namespace.running("high")
    assert "high" in left(namespace)
    assert all(not p["spec"].get("nodeName") for p in namespace.all() if p["metadata"]["name"].startswith("waiting"))


def test_a_pod_that_no_eviction_helps_kills_nobody_and_stays_quiet(
    cluster: GpuCluster, namespace: PodNamespace
) -> None:
    cpu = most_of_the_cpu(cluster)
    namespace.create(bystander(cluster, cpu=cpu))
    namespace.create(on_card(cluster, "holder", "high", 80))
    namespace.running("bystander", "holder")
    with cluster.extender_with(log_level="debug"):
        asking = on_card(cluster, "asking", "high", 30, cpu="500m")
        namespace.create(asking)
        namespace.until(lambda: namespace.extender_events("asking") or reported(namespace, "asking"), "a refusal")
        log = cluster.work / "logs" / "extender.log"
        before = log.read_text().count("filter took")
        time.sleep(SETTLED_S)
        calls = log.read_text().count("filter took") - before
    assert left(namespace) == {"bystander", "holder", "asking"}
    assert calls <= MAX_CALLS
    errors = (cluster.work / "logs" / "vgpu-scheduler.log").read_text().splitlines()
    assert not [
        line for line in errors if "expected at least one victim" in line and f"{namespace.name}/asking" in line
    ]


def test_cpu_and_card_are_freed_together(cluster: GpuCluster, namespace: PodNamespace) -> None:
    namespace.create(bystander(cluster, cpu=most_of_the_cpu(cluster)))
    namespace.create(on_card(cluster, "holder", "low", 80))
    namespace.running("bystander", "holder")
    namespace.create(on_card(cluster, "high", "high", 30, cpu="500m"))
    namespace.running("high")
    assert left(namespace) == {"high"}


def reported(namespace: PodNamespace, name: str) -> bool:
    """Whether kube-scheduler has said that a pod is unschedulable."""
    conditions = namespace.get(name)["status"].get("conditions") or []
    return any(condition.get("reason") == "Unschedulable" for condition in conditions)
