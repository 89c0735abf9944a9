"""Whether the processes of the parts are the ones that were started."""

from pathlib import Path

from cluster import nodes
from cluster.cluster import GpuCluster
from tests.e2e.monitor.findings import Finding


def root(node: nodes.ClusterNode) -> Path:
    """The node's root folder as the node's processes see it, with the mount of the regions."""
    return Path(f"/proc/{node.mounts.pid}/root")


def arbiter_pid(node: nodes.ClusterNode) -> int:
    """Process ID of the node's arbiter; 0 while none runs."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            program = (folder / "cmdline").read_bytes().split(b"\0")[0]
            here = (folder / "ns/mnt").readlink() == Path(f"/proc/{node.mounts.pid}/ns/mnt").readlink()
        except OSError:
            continue
        if program.endswith(b"/vgpu-arbiter") and here:
            return int(folder.name)
    return 0


class PartProcesses:
    """The processes as they were at the last call of `remember`."""

    def __init__(self, cluster: GpuCluster) -> None:
        self._cluster = cluster
        self.remember()

    def remember(self) -> None:
        """Take the present processes as the right ones."""
        self._pids = {part.name: part.process.pid for part in self._cluster.parts}
        self._arbiters = {node.name: arbiter_pid(node) for node in self._cluster.nodes}

    def ended(self) -> list[Finding]:
        """Return a finding for each part that does not run, with the last lines of its log."""
        return [
            Finding(f"{part.name} ended", part.process.tail()[-1500:])
            for part in self._cluster.parts
            if not part.process.running()
        ]

    def replaced(self) -> list[Finding]:
        """Return a finding for each arbiter that was started again, and each part whose process is another one."""
        pids = {part.name: part.process.pid for part in self._cluster.parts if part.process.running()}
        changed = [name for name, pid in pids.items() if pid != self._pids[name]]
        changed += [
            f"arbiter of {node.name}" for node in self._cluster.nodes if arbiter_pid(node) != self._arbiters[node.name]
        ]
        return [Finding(f"{name} was started again", "") for name in changed]
