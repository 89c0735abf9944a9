"""`vgpu top` on a node: containers are in the list from their start to their end, whatever files they leave."""

import json
import subprocess
import sys

import pytest

from cluster import nodes
from cluster.programs import binaries
from tests.e2e.monitor.part_processes import root
from tests.e2e.pod_namespace import PodNamespace, container, pod
from vgpu.domain import names

pytestmark = pytest.mark.e2e

GONE_S = 5


def listed(node: nodes.ClusterNode, namespace: PodNamespace) -> set[str]:
    """The namespace's containers in `vgpu top`, as root on the node sees them."""
    command = ["top", "--once", "-o", "json", "--refresh", "0.1", "--state", str(root(node) / "var/lib/vgpu")]
    program = [sys.executable, "-m", "vgpu.cli", *command]
    printed = subprocess.run(program, cwd=binaries.REPOSITORY, stdout=subprocess.PIPE, text=True, check=True).stdout
    found = {row["name"] for row in json.loads(printed)}
    return {line.removeprefix(f"{namespace.name}/") for line in found if line.startswith(f"{namespace.name}/")}


def test_stopped_containers_leave_within_seconds(namespace: PodNamespace) -> None:
    node = namespace.cluster.nodes[0]
    here = {names.USE_GPU_UUID: node.cards[0].uuid}
    until_told = container(command=("sh", "-c", "until [ -e /end ]; do sleep 0.1; done"), gpu_mem=256)
    ends = pod("ends", until_told, annotations=here)
    ends["spec"]["restartPolicy"] = "Never"
    namespace.create(ends)
    namespace.create(pod("deleted", gpu_mem=256, annotations=here))
    namespace.create(pod("stays", gpu_mem=256, annotations=here))
    namespace.running("ends", "deleted", "stays")
    assert listed(node, namespace) == {"ends/main", "deleted/main", "stays/main"}
    namespace.run("ends", "touch", "/end")
    namespace.delete("deleted")
    namespace.until(lambda: listed(node, namespace) == {"stays/main"}, "only the container that runs is listed", GONE_S)
    ended = {"ends": "Succeeded", "stays": "Running"}
    namespace.until(lambda: namespace.phases() == ended, "the kubelet reports what has ended")
