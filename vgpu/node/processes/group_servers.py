"""The MPS servers of this node's groups among its processes: NVML has the time of a group's members as its server's.

A process chooses its own name and environment. So one that says that it is a server counts as one only outside of all
pods, or in a pod of the namespace that vgpushare is installed in, where users make none.
"""

from collections.abc import Mapping
from pathlib import Path

from vgpu.adapters import mps
from vgpu.adapters.procfs import COMMAND_LENGTH, HostProcess
from vgpu.domain.identifiers import KubeletPodUid, Namespace
from vgpu.node.containers.bound_pod import BoundPod
from vgpu.node.processes import cgroup_path
from vgpu.node.space import directories
from vgpu.node.space.directories import GroupOnCard


class GroupServers:
    """Which processes are servers of groups, and which allocations they work for."""

    def __init__(self, state: Path, namespace: Namespace, proc: Path = Path("/proc")) -> None:
        """`state` is the state directory, `namespace` the one of vgpushare's own pods."""
        self._state, self._namespace, self._proc = state, namespace, proc

    def group_of(self, pid: int, process: HostProcess, pods: Mapping[KubeletPodUid, BoundPod]) -> GroupOnCard | None:
        """Return the group whose server a process is; None for any other. Reads /proc for processes of its name.

        `pods` are the node's, by the UID in cgroups.
        """
        if process.command[:COMMAND_LENGTH] != mps.SERVER[:COMMAND_LENGTH] or not self._is_trusted(process, pods):
            return None
        groups, found = directories.below_state(self._state), mps.process(pid, self._proc)
        return groups.of_pipe(found.pipe) if groups and found and found.is_server else None

    def members(self, of: GroupOnCard) -> frozenset[str]:
        """Return the allocations that are members of a group. Raises OSError."""
        groups = directories.below_state(self._state)
        return groups.members(of) if groups else frozenset()

    def _is_trusted(self, process: HostProcess, pods: Mapping[KubeletPodUid, BoundPod]) -> bool:
        owners = [pods.get(owner.pod) for owner in cgroup_path.owners_of(process.cgroups)]
        return all(pod is not None and pod.namespace == self._namespace for pod in owners)
