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
from tests.e2e.node.test_coexistence import other_plugin, plain
from tests.e2e.nvidia_plugin import RESOURCE
from tests.e2e.pod_namespace import PodNamespace, pod

pytestmark = pytest.mark.e2e


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


def describe_cards(node: nodes.ClusterNode) -> None:
    """Write the specification that gives a container with a card the variable CDI_CARD."""
    devices = [{"name": card.uuid, "containerEdits": {"env": [f"CDI_CARD={card.uuid}"]}} for card in node.cards]
    folder = node.work / "run" / "cdi"  # the node's /var/run/cdi
    folder.mkdir()
    (folder / "nvidia.json").write_text(json.dumps({"cdiVersion": "0.6.0", "kind": RESOURCE, "devices": devices}))


def test_pods_get_shares_and_cdi_devices(newer: GpuCluster, users: PodNamespace) -> None:
    """One test, because a cluster is started for it."""
    (node,) = newer.nodes
    version = newer.api.get(f"/api/v1/nodes/{node.name}")["status"]["nodeInfo"]["containerRuntimeVersion"]
    assert version.startswith("containerd://2.")
    users.create(pod("share", gpu_mem=2048, gpu_cores=30))
    users.running("share")
    assert_total_memory(users, "share", 2048)
    assert shims(node) == {containerd.PROGRAMS.folder / "containerd-shim-runc-v2"}
    describe_cards(node)
    with other_plugin(users, node, 1, ["--cdi"]):
        users.create(plain("whole"))
        users.running("whole")
        assert f"CDI_CARD={node.cards[0].uuid}" in users.run("whole", "env").splitlines()
        users.delete("whole")
