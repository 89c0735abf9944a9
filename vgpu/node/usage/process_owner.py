"""Which container a process belongs to, asked at once: the watch of processes knows it some seconds later."""

from collections.abc import Callable, Iterable, Mapping

from vgpu.adapters.procfs import HostProcess
from vgpu.domain.identifiers import CardUuid, KubeletPodUid
from vgpu.node.containers.bound_pod import BoundPod
from vgpu.node.processes import cgroup_path
from vgpu.node.usage.gpu_time import Use


def owners(
    processes: Iterable[tuple[CardUuid, int]],
    read: Callable[[int], HostProcess | None],
    pods: Mapping[KubeletPodUid, BoundPod],
) -> dict[tuple[CardUuid, int], Use | None]:
    """Return the owner of each process of a card, None for one outside of all pods; unknown ones are missing.

    A process is unknown where it has ended, or where the status of its pod does not show its container yet. `pods` are
    the node's, by the UID in cgroups.
    """
    found: dict[tuple[CardUuid, int], Use | None] = {}
    for gpu, pid in processes:
        process = read(pid)
        claims = cgroup_path.owners_of(process.cgroups) if process else frozenset()
        if process and not claims:
            found[gpu, pid] = None
        for claim in claims:
            pod = pods.get(claim.pod)
            container = dict(pod.containers).get(claim.container) if pod else None
            if pod and container:
                found[gpu, pid] = (pod.uid, container, gpu)
    return found
