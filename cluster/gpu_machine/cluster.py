"""A real cluster on a machine with NVIDIA cards: one node, the machine's own driver, vgpushare from manifests/."""

import os
from pathlib import Path

from cluster import bare
from cluster.cluster import GpuCluster
from cluster.gpu_machine import image, node
from cluster.programs.containerd import ContainerdMajor

IMAGES = "VGPU_IMAGES"  # the folder of images that were built on another machine


class GpuMachineCluster(GpuCluster):
    """A cluster whose one node has all cards of this machine."""

    def __init__(self, runtime: ContainerdMajor = ContainerdMajor.PINNED) -> None:
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
        own = sorted(Path(provided).glob("*.tar")) if provided else super().archives()
        return [*own, image.build(self.work / "images-of-the-machine")]
