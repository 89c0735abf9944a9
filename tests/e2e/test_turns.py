"""Two containers at work on one card, and the arbiter that gives them turns."""

import os
import signal
from pathlib import Path

import pytest

from cluster import nodes, wait
from cluster.cluster import Cluster
from tests.e2e.pod_namespace import Space, container, pod
from vgpu import names
from vgpu.cli.local import allocations

pytestmark = pytest.mark.e2e

BACK_S = 2.0
MS = 1_000_000


def busy(name: str, cores: int) -> dict[str, object]:
    return pod(name, container(command=("gpuprobe", "spin", "500"), gpu_mem=1024, gpu_cores=cores))


def root(node: nodes.Node) -> Path:
    """The node's files as its processes see them, the regions' own mount among them."""
    return Path(f"/proc/{node.mounts.pid}/root")


def gpu_ns(node: nodes.Node, space: Space) -> dict[str, int]:
    """The GPU time that each pod of the namespace has used, as `vgpu top` reads it."""
    seen = allocations.read_all(root(node) / "var/lib/vgpu")
    parts = {each.name: sum(card.gpu_ns for card in each.cards) for each in seen}
    return {name.split("/")[1]: used for name, used in parts.items() if name.startswith(f"{space.name}/")}


def arbiter(node: nodes.Node) -> int:
    """Its process on this node; 0 while there is none."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            program = (folder / "cmdline").read_bytes().split(b"\0")[0]
            here = (folder / "ns/mnt").readlink() == Path(f"/proc/{node.mounts.pid}/ns/mnt").readlink()
        except OSError:
            continue
        if program.endswith(b"/vgpu-arbiter") and here:
            return int(folder.name)
    return 0


def both_go_on(node: nodes.Node, space: Space) -> None:
    before = gpu_ns(node, space)
    assert before.keys() == {"first", "second"}
    space.until(
        lambda: all(used > before[name] + 100 * MS for name, used in gpu_ns(node, space).items()),
        "both have used 100 ms more",
        within_s=20,
    )


def test_two_pods_at_work_on_one_card_go_on_when_the_arbiter_is_killed(space: Space) -> None:
    space.create(busy("first", 30))
    space.create(busy("second", 60))
    first, _ = space.running("first", "second")
    assert space.assignment("first").gpus() == space.assignment("second").gpus()
    (node,) = [each for each in space.cluster.nodes if each.name == first["spec"]["nodeName"]]
    both_go_on(node, space)
    killed = arbiter(node)
    assert killed
    os.kill(killed, signal.SIGKILL)
    wait.until(lambda: arbiter(node) not in (0, killed), "the arbiter is back", BACK_S)
    both_go_on(node, space)


def test_an_admin_s_watermark_reaches_the_node_at_once(cluster: Cluster) -> None:
    node = cluster.nodes[0]
    path, card = f"{names.GPUNODES_PATH}/{node.name}", node.cards[0].uuid
    file = root(node) / "var/lib/vgpu/watermarks"
    cluster.api.patch(path, {"spec": {"cards": [{"uuid": card, "watermark": {"high": 60, "low": 30}}]}})
    wait.until(lambda: f"{card} 60 30\n" in file.read_text(), "the watermark", 5)
    cluster.api.patch(path, {"spec": {"cards": []}})
    wait.until(lambda: file.read_text() == "* 90 70\n", "no watermark", 5)
