"""What a container can do to the files that are mounted into it, and a node on which these files cannot be used."""

import time

import pytest

from cluster import nodes
from tests.e2e.churn import has_event, small
from tests.e2e.limits.test_limits import assert_total_memory
from tests.e2e.pod_namespace import PodNamespace, pod
from vgpu.domain import names

pytestmark = pytest.mark.e2e

FILL = "dd if=/dev/zero of=/run/vgpu/region bs=1M seek={seek} conv=notrunc 2>&1; true"


def at(node: nodes.ClusterNode, card: int = 0) -> dict[str, str]:
    return {names.USE_GPU_UUID: node.cards[card].uuid}


def on_node(node: nodes.ClusterNode, *command: str) -> None:
    """Run a command among the node's mounts."""
    process = node.process(command[0], list(command))
    process.start()
    assert process.wait(20) == 0, process.tail()


def reasons(namespace: PodNamespace, node: nodes.ClusterNode) -> set[str]:
    """Why cards of the node are unhealthy, as its GPUNode says."""
    cards = namespace.cluster.api.get(f"{names.GPUNODES_PATH}/{node.name}")["status"]["cards"]
    return {card["reason"] for card in cards}


def test_a_container_that_fills_its_region_stops_no_other_and_starts_again(namespace: PodNamespace) -> None:
    node, plugin = namespace.cluster.nodes[0], namespace.cluster.plugins[0]
    here = at(node)
    for name in ("fills", "beside"):
        namespace.create(pod(name, annotations=here, gpu_mem=1024))
    namespace.running("fills", "beside")
    for seek in (0, 1 << 20):
        assert "No space left" in namespace.run("fills", "sh", "-c", FILL.format(seek=seek))
    namespace.create(pod("after", annotations=here, gpu_mem=2048))
    namespace.running("after")
    assert_total_memory(namespace, "after", 2048)
    assert_total_memory(namespace, "beside", 1024)
    plugin.stop()
    plugin.start()
    assert_total_memory(namespace, "beside", 1024)
    container = namespace.get("fills")["status"]["containerStatuses"][0]["containerID"].rpartition("/")[2]
    node.ctr("tasks", "kill", "-s", "SIGKILL", container)
    namespace.until(
        lambda: namespace.get("fills")["status"]["containerStatuses"][0]["restartCount"] == 1, "fills is restarted", 90
    )
    namespace.running("fills", within_s=90)
    assert_total_memory(namespace, "fills", 1024)


def test_no_pod_starts_on_a_node_whose_state_directory_is_mounted_noexec(namespace: PodNamespace) -> None:
    """The container's loader would not load the limiter, and the container would run without limits."""
    node, plugin = namespace.cluster.nodes[0], namespace.cluster.plugins[0]
    state = "/var/lib/vgpu"
    namespace.create(small("before", gpu_mem=1024))
    namespace.running("before")
    on_node(node, "mount", "--rbind", state, state)
    on_node(node, "mount", "--make-rprivate", state)
    on_node(node, "mount", "-o", "remount,bind,noexec", state)
    try:
        namespace.until(
            lambda: "cannot be mapped as a program" in plugin.log.read_text(errors="replace"), "the log says why", 20
        )
        namespace.until(lambda: "LimiterUnusable" in reasons(namespace, node), "LimiterUnusable in the GPUNode", 20)
        time.sleep(1)  # the extender watches the GPUNode
        namespace.create(pod("waits", annotations=at(node), gpu_mem=1024))
        namespace.until(lambda: has_event(namespace, "waits", "0/2 nodes are available"), "the pod is not placed")
        time.sleep(3)
        assert namespace.phases() == {"before": "Running", "waits": "Pending"}
    finally:
        on_node(node, "umount", "-l", state)
    namespace.running("waits", within_s=60)
    assert_total_memory(namespace, "waits", 1024)


def test_on_a_full_disk_a_pod_waits_and_starts_once_there_is_room(namespace: PodNamespace) -> None:
    """An error from Allocate would make the pod Failed for good."""
    node = namespace.cluster.nodes[0]
    allocations = "/var/lib/vgpu/allocations"
    on_node(node, "mount", "-t", "tmpfs", "-o", "nr_inodes=1", "full", allocations)
    try:
        namespace.create(pod("waits", annotations=at(node), gpu_mem=1024))
        namespace.until(lambda: "FilesFailed" in namespace.describe(), "FilesFailed")
        assert namespace.phases() == {"waits": "Pending"}
    finally:
        on_node(node, "umount", "-l", allocations)
    namespace.running("waits", within_s=60)
    assert_total_memory(namespace, "waits", 1024)
