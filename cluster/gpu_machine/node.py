"""A node whose cards are those of this machine, through the machine's own driver."""

from pathlib import Path

from cluster import missing, nodes
from cluster.programs.containerd import ContainerdMajor


class GpuMachineNode(nodes.ClusterNode):
    """A node with real cards: containers get them from the device plugin, without NVIDIA's container toolkit."""

    def prepare_driver(self) -> Path:
        """Nothing is prepared: containers run under runc itself."""
        return Path(missing.which("runc") or "runc")

    @property
    def plugin_environment(self) -> dict[str, str]:
        return {}

    @property
    def plugin_flags(self) -> list[str]:
        """The runtime of containerd 1.6 knows no CDI."""
        way = "cdi" if self.containerd_major is ContainerdMajor.PINNED else "mounts"
        return [f"--device-list={way}", "--cdi-kind=vgpu.io/gpu"]
