"""A real cluster on a machine with NVIDIA cards: one node, the machine's own driver, vgpushare from manifests/."""

import os
from pathlib import Path

from cluster import bare, missing
from cluster.cluster import GpuCluster
from cluster.gpu_machine import image, node
from cluster.programs.containerd import ContainerdMajor
from vgpu.adapters.nvml.session import Nvml
from vgpu.domain.errors import NvmlError

IMAGES = "VGPU_IMAGES"  # the folder of images that were built on another machine


class GpuMachineCluster(GpuCluster):
    """A cluster whose one node has all cards of this machine."""

    def __init__(self, runtime: ContainerdMajor = ContainerdMajor.PINNED) -> None:
        """Raise missing.Missing before anything is started where the machine has no card or no Python with PyTorch."""
        check_cards()
        image.interpreter()
        super().__init__(count=1, runtime=runtime)

    def make_node(self, index: int, cards: int) -> node.GpuMachineNode:  # noqa: ARG002 - the machine has its own
        """Make the node."""
        driver = bare.DRIVER  # its probe only
        return node.GpuMachineNode(
            index, self.programs, self.work, self.within, (), driver, self.containerd, self.status_period
        )

    def archives(self) -> list[Path]:
        """The cluster's own images, and one with this machine's Python."""
        provided = os.environ.get(IMAGES)
        own = provided_images(Path(provided)) if provided else super().archives()
        return [*own, image.build(self.work / "images-of-the-machine")]


def check_cards() -> None:
    """Raise missing.Missing where NVML finds no card."""
    try:
        with Nvml() as nvml:
            cards = nvml.gpus()
    except NvmlError as error:
        raise missing.Missing([f"an NVIDIA driver that works (NVML: {error})"]) from None
    if not cards:
        raise missing.Missing(["an NVIDIA card: NVML finds none"])


def provided_images(folder: Path) -> list[Path]:
    """Return the archives that were built on another machine. Raises missing.Missing where there are none."""
    if not (archives := sorted(folder.glob("*.tar"))):
        raise missing.Missing([f"archives of images (*.tar) in {folder}, which {IMAGES} names"])
    return archives
