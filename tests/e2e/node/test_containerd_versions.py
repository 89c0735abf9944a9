"""A node on containerd 2 beside the suite's, which run Debian's 1.6: a pod with a share, and devices by CDI."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster import nodes
from cluster.cluster import GpuCluster
from cluster.programs import containerd
from cluster.programs.containerd import ContainerdMajor
from tests.e2e.limits.test_limits import assert_total_memory
from tests.e2e.made_cluster import make
from tests.e2e.pod_namespace import PodNamespace, pod

pytestmark = pytest.mark.e2e

KIND = "example.com/thing"
SPECIFICATION = {
    "cdiVersion": "0.6.0",
    "kind": KIND,
    "devices": [{"name": "one", "containerEdits": {"env": ["THING=one"]}}],
}


@pytest.fixture(scope="module")
def newer(pytestconfig: pytest.Config) -> Iterator[GpuCluster]:
    """One node with one card."""
    if not containerd.PROGRAMS.is_built():
        pytest.skip("containerd 2 is not built: python -m cluster.programs.containerd")
    with make(pytestconfig, lambda: GpuCluster(count=1, cards=1, runtime=ContainerdMajor.PINNED)) as made:
        yield made


@pytest.fixture
def users(newer: GpuCluster) -> Iterator[PodNamespace]:
    made = PodNamespace(newer, "users")
    yield made
    made.close()


def shims(node: nodes.ClusterNode) -> set[Path]:
    """Programs of the node's shims: PATH decides which one containerd starts."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended
            arguments = (process / "cmdline").read_text().split("\0")
            program = (process / "exe").readlink()
            if str(node.work / "containerd.sock") in arguments and program.name.startswith("containerd-shim"):
                found.add(program)
    return found


def test_a_pod_has_its_share_and_a_device_of_the_nodes_cdi_folder(newer: GpuCluster, users: PodNamespace) -> None:
    """One test, because a cluster is started for it."""
    (node,) = newer.nodes
    version = newer.api.get(f"/api/v1/nodes/{node.name}")["status"]["nodeInfo"]["containerRuntimeVersion"]
    assert version.startswith("containerd://2.")
    folder = node.work / "run" / "cdi"  # /var/run/cdi of the node
    folder.mkdir()
    (folder / "thing.json").write_text(json.dumps(SPECIFICATION))
    users.create(pod("holds", annotations={"cdi.k8s.io/test": f"{KIND}=one"}, gpu_mem=2048, gpu_cores=30))
    users.running("holds")
    assert_total_memory(users, "holds", 2048)
    assert "THING=one" in users.run("holds", "env").splitlines()
    assert shims(node) == {containerd.PROGRAMS.folder / "containerd-shim-runc-v2"}
