"""The CDI specification of the device plugin, compared with that of NVIDIA's container toolkit for one node."""

import json
import os
import shutil
import stat
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from cluster.programs import toolkit
from deviceplugin.driver import cdi, files
from deviceplugin.driver.discovery import DriverRoot
from deviceplugin.responses import Injection
from simgpu import build, state_directory
from simgpu.state_directory import SimulatedCard
from tests.deviceplugin.driver.node_root import VERSION, NodeRoot
from tests.vgpu.node import builders
from vgpu.adapters.nvml.records import Gpu
from vgpu.node.containers.state_files import StateFiles

pytestmark = pytest.mark.e2e

FOLDER: Final = "/usr/lib/x86_64-linux-gnu"
# Libraries of driver 580 by the numbers of their SONAMEs; without a number the SONAME has the driver's version.
# libnvidia-sandboxutils is left out: NVIDIA's program would load it.
NUMBERED: Final = {
    "1": (
        *("libcuda", "libnvidia-ml", "libnvidia-ptxjitcompiler", "libnvidia-opencl", "libnvidia-cfg", "libnvcuvid"),
        *("libnvidia-encode", "libnvidia-allocator", "libnvidia-opticalflow", "libcudadebugger"),
    ),
    "4": ("libnvidia-nvvm",),
    VERSION: ("libnvidia-pkcs11", "libnvidia-pkcs11-openssl3", "libnvidia-gpucomp"),
}
DRAWING: Final = (
    *("libnvidia-glcore", "libnvidia-glsi", "libnvidia-glvkspirv", "libnvidia-eglcore", "libnvidia-tls"),
    *("libnvidia-rtcore", "libnvidia-fbc", "libnvidia-ngx", "libnvoptix", "libEGL_nvidia", "libGLX_nvidia"),
    *("libGLESv1_CM_nvidia", "libGLESv2_nvidia", "libnvidia-vksc-core", "libnvidia-present"),
)
CONTROL_NODES: Final = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset")


@pytest.fixture
def node(tmp_path: Path) -> NodeRoot:
    """A node with two cards: NVIDIA's program asks the node's own NVML, so it must be the simulated one."""
    made = NodeRoot(tmp_path / "host")
    for number, stems in (*NUMBERED.items(), (VERSION, DRAWING)):
        for stem in stems:
            made.library(f"{FOLDER}/{stem}.so.{VERSION}", f"{stem}.so.{number}")
            if number != VERSION:
                made.link(f"{FOLDER}/{stem}.so.{number}", f"{stem}.so.{VERSION}")
    shutil.copy(build.ensure() / files.NVML, made.seen(f"{FOLDER}/libnvidia-ml.so.{VERSION}"))
    for program in files.PROGRAMS:
        shutil.copy("/bin/true", made.seen(f"/usr/bin/{program}"))
    for name in (*CONTROL_NODES, "nvidia0", "nvidia1"):
        os.mknod(made.seen(f"/dev/{name}"), stat.S_IFCHR | 0o666, os.makedev(1, 3))
    return made


@pytest.fixture
def cards(tmp_path: Path) -> tuple[SimulatedCard, ...]:
    made = tuple(state_directory.make_cards(2))
    state_directory.write_cards(tmp_path / "cards", made)
    return made


def theirs(node: NodeRoot, state: Path) -> dict[str, Any]:
    command = [str(toolkit.PROGRAMS.ensure() / "nvidia-ctk"), "cdi", "generate", "--mode=nvml", "--format=json"]
    command += [f"--driver-root={node.path}", f"--dev-root={node.path}", "--device-name-strategy=uuid"]
    environment = {**os.environ, "SIMGPU_STATE": str(state)}
    printed = subprocess.run(command, env=environment, capture_output=True, check=True).stdout
    specification: dict[str, Any] = json.loads(printed)
    return specification


def ours(node: NodeRoot, cards: tuple[SimulatedCard, ...]) -> dict[str, Any]:
    injection = Injection(StateFiles(node.path), "", dev=node.path / "dev")
    mounts = files.mounts(DriverRoot(node.path).find(VERSION))
    return cdi.specification(map(of_node, range(2), cards), injection.control_nodes(), mounts)


def of_node(index: int, card: SimulatedCard) -> Gpu:
    made = builders.gpu(index)
    return replace(made, card=replace(made.card, uuid=card.uuid), minor=index)


def device_nodes(edits: dict[str, Any]) -> set[str]:
    return {node["path"] for node in edits["deviceNodes"]}


def mounted(specification: dict[str, Any]) -> set[str]:
    """The names of the driver's files that containers get; NVIDIA's /dev/null is a mark for its own older runtime."""
    mounts = specification["containerEdits"]["mounts"]
    return {Path(mount["hostPath"]).name for mount in mounts if mount["hostPath"] != "/dev/null"}


def test_both_name_the_same_cards_and_device_nodes(node: NodeRoot, cards: tuple[SimulatedCard, ...]) -> None:
    mine, other = ours(node, cards), theirs(node, node.path.parent / "cards")
    nodes = [
        {device["name"]: device_nodes(device["containerEdits"]) for device in specification["devices"]}
        for specification in (mine, other)
    ]
    assert nodes[1].pop("all")
    assert nodes[0] == nodes[1]
    assert device_nodes(mine["containerEdits"]) == device_nodes(other["containerEdits"])


def test_ours_has_their_files_but_those_that_draw(node: NodeRoot, cards: tuple[SimulatedCard, ...]) -> None:
    mine, other = mounted(ours(node, cards)), mounted(theirs(node, node.path.parent / "cards"))
    assert {f"libcuda.so.{VERSION}", "nvidia-smi"} <= mine
    assert {name.split(".so.")[0] for name in other - mine} <= set(DRAWING)
    assert mine - other == set()
