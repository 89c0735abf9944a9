"""Two busy containers on one card, and the arbiter that gives them turns."""

import os
import signal

import pytest

from cluster import nodes, wait
from cluster.cluster import GpuCluster
from tests.e2e.monitor.part_processes import arbiter_pid, root
from tests.e2e.pod_namespace import PodNamespace, container, pod
from vgpu.cli.local import allocations
from vgpu.domain import names

pytestmark = pytest.mark.e2e

RESTART_S = 2.0
MS = 1_000_000


def busy(name: str, cores: int, **annotations: str) -> dict[str, object]:
    spinning = container(command=("gpuprobe", "spin", "500"), gpu_mem=1024, gpu_cores=cores)
    return pod(name, spinning, annotations=annotations)


def gpu_ns(node: nodes.ClusterNode, namespace: PodNamespace) -> dict[str, int]:
    """The GPU time that each pod of the namespace has used, as `vgpu top` reads it."""
    found = allocations.read_all(root(node) / "var/lib/vgpu")
    parts = {container.name: sum(card.gpu_ns for card in container.cards or ()) for container in found}
    return {name.split("/")[1]: used for name, used in parts.items() if name.startswith(f"{namespace.name}/")}


def assert_both_use_the_gpu(node: nodes.ClusterNode, namespace: PodNamespace) -> None:
    before = gpu_ns(node, namespace)
    assert before.keys() == {"first", "second"}
    namespace.until(
        lambda: all(used > before[name] + 100 * MS for name, used in gpu_ns(node, namespace).items()),
        "both have used 100 ms more",
        within_s=20,
    )


def test_two_busy_pods_continue_when_the_arbiter_is_killed(namespace: PodNamespace) -> None:
    namespace.create(busy("first", 30))
    (first,) = namespace.running("first")
    (gpu,) = namespace.assignment("first").gpus()
    namespace.create(busy("second", 60, **{names.USE_GPU_UUID: gpu}))
    namespace.running("second")
    assert namespace.assignment("second").gpus() == {gpu}
    (node,) = [node for node in namespace.cluster.nodes if node.name == first["spec"]["nodeName"]]
    assert_both_use_the_gpu(node, namespace)
    killed = arbiter_pid(node)
    assert killed
    os.kill(killed, signal.SIGKILL)
    wait.until(lambda: arbiter_pid(node) not in (0, killed), "another arbiter runs", RESTART_S)
    assert_both_use_the_gpu(node, namespace)


def test_an_admin_s_watermark_reaches_the_node_at_once(cluster: GpuCluster) -> None:
    node = cluster.nodes[0]
    path, card = f"{names.GPUNODES_PATH}/{node.name}", node.cards[0].uuid
    file = root(node) / "var/lib/vgpu/watermarks"
    cluster.api.patch(path, {"spec": {"cards": [{"uuid": card, "watermark": {"high": 60, "low": 30}}]}})
    wait.until(lambda: f"{card} 60 30\n" in file.read_text(), "the watermark", 5)
    cluster.api.patch(path, {"spec": {"cards": []}})
    wait.until(lambda: file.read_text() == "* 90 70\n", "no watermark", 5)
