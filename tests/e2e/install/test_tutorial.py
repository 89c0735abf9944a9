"""Every command of the tutorial runs, in its order, as it is written there but for the image and nvidia-smi."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster import accounts, images, wait
from cluster.cluster import GpuCluster
from cluster.programs import binaries
from tests.e2e.pod_namespace import held_slices

pytestmark = pytest.mark.e2e

TUTORIAL = binaries.REPOSITORY / "docs" / "tutorial.md"
KREW = binaries.REPOSITORY / "manifests" / "krew" / "kubectl-vgpu"
TRANSCRIPT = binaries.REPOSITORY / "build" / "tutorial.txt"
SECTION = re.compile(r"^## (?P<title>.+)\n(?P<text>(?:(?!^## ).*\n)*)", re.MULTILINE)
COMMANDS = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHOWN = {
    "The cards": "NVIDIA H100",
    "A share of a card": "8 GiB, 30 %",
    "Bounds for a namespace": "exceeded quota: gpus",
    "A full cluster": "nearest fit",
    "A pod that is more important": "evicted for pod tutorial/urgent of higher priority",
    "Close a card": "cordoned",
    "What was used": "2 of 2 pods are placed",
    "Clean up": 'priorityclass.scheduling.k8s.io "tutorial-urgent" deleted',
}


def sections() -> dict[str, str]:
    """The commands of each section, as they can run on this machine."""
    found = {
        match["title"]: "".join(COMMANDS.findall(match["text"])) for match in SECTION.finditer(TUTORIAL.read_text())
    }
    replaced = {"ubuntu:24.04": images.BASE, "nvidia-smi": "gpuprobe info"}
    for old, new in replaced.items():
        found = {title: commands.replace(old, new) for title, commands in found.items()}
    return found


@pytest.fixture(scope="module")
def path(cluster: GpuCluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with kubectl and vgpu."""
    folder = tmp_path_factory.mktemp("bin")
    (folder / "kubectl").symlink_to(cluster.work / "kubectl")
    (folder / "vgpu").write_text(f'#!/bin/sh\nexec {sys.executable} -m vgpu.cli "$@"\n')
    (folder / "vgpu").chmod(0o755)
    (folder / "kubectl-vgpu").write_text(f'#!/bin/sh\nVGPU_PYTHON={sys.executable} exec {KREW} "$@"\n')
    (folder / "kubectl-vgpu").chmod(0o755)
    return folder


@pytest.fixture
def cleaned(cluster: GpuCluster) -> Iterator[None]:
    """Deletes what the tutorial made, also where it ends half-way: other tests need the cards."""
    yield
    cluster.kubectl("delete", "priorityclass", "tutorial-urgent", "--ignore-not-found")
    cluster.kubectl("delete", "namespace", "tutorial", "--ignore-not-found", "--timeout=150s")
    wait.until(lambda: not held_slices(cluster), "no slice held", 60)


def test_every_section_has_commands_and_an_expectation() -> None:
    assert sections().keys() == SHOWN.keys()
    assert all(sections().values())


@pytest.mark.usefixtures("cleaned")
def test_the_tutorial_runs(cluster: GpuCluster, path: Path) -> None:
    environment = os.environ | {
        "PATH": f"{path}:{os.environ['PATH']}",
        "KUBECONFIG": str(accounts.path(cluster.work, accounts.ADMIN.name)),
        "COLUMNS": "200",
    }
    TRANSCRIPT.unlink(missing_ok=True)
    for title, commands in sections().items():
        with cluster.within.network():
            done = subprocess.run(
                ["bash", "-e", "-o", "pipefail", "-c", commands], env=environment, cwd=binaries.REPOSITORY,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=200, check=False,
            )  # fmt: skip
        with TRANSCRIPT.open("a") as file:
            file.write(f"## {title}\n\n{commands}\n{done.stdout}\n")
        assert (done.returncode, SHOWN[title] in done.stdout) == (0, True), f"{title}:\n{done.stdout}"
