"""Which processes use a card of which their container has no share. Pure.

An image or a ConfigMap may set NVIDIA_VISIBLE_DEVICES, a container may be privileged or mount /dev, and any process of
the host may open a card. Nothing of this passes the scheduler or the kubelet's devices, so it is found from outside:
NVML names the processes of each card, a process's cgroup names its container, and the node knows which container holds
devices of which card.
"""

from collections.abc import Callable, Collection, Iterable, Mapping

from vgpu.adapters.procfs import COMMAND_LENGTH, HostProcess
from vgpu.domain.identifiers import NO_CONTAINER, CardUuid, ContainerName, KubeletPodUid, PodUid
from vgpu.node.containers.bound_pod import BoundPod, api_uid
from vgpu.node.containers.card_holders import CardHolder
from vgpu.node.processes import cgroup_path
from vgpu.node.processes.cgroup_path import CgroupOwner
from vgpu.node.processes.findings import FindingKind, Key, ListedProcess, ProcessFinding

IsGroupServer = Callable[[int, HostProcess, Mapping[KubeletPodUid, BoundPod]], bool]
"""Of a process by its pid, and the node's pods."""


class UseJudge:
    """Knows the pods and what they hold at one moment."""

    def __init__(
        self,
        pods: Iterable[BoundPod],
        held: Collection[CardHolder],
        allowed: Collection[str],
        is_group_server: IsGroupServer = lambda *_: False,
    ) -> None:
        """`allowed` are the commands of host processes that may use cards, such as NVIDIA's daemons.

        `is_group_server` says whether a process is the MPS server of a group in space, which works for its members.
        """
        self._is_group_server = is_group_server
        self._pods = by_kubelet_uid(pods)
        self._held = held
        self._holders = {(share.pod_uid, share.gpu) for share in held}
        self._allowed = {command[:COMMAND_LENGTH] for command in allowed}

    def findings(self, uses: Iterable[ListedProcess]) -> Mapping[Key, ProcessFinding]:
        """Return the uses without a share, by key."""
        found: dict[Key, ProcessFinding] = {}
        for use in sorted(uses, key=lambda use: (use.gpu, use.pid)):
            judged = self._judged(use)
            if judged is not None:
                found.setdefault(*judged)
        return found

    def _judged(self, use: ListedProcess) -> tuple[Key, ProcessFinding] | None:
        if use.process is None:
            return (FindingKind.UNKNOWN_PROCESS, use.gpu, str(use.pid)), ProcessFinding(
                FindingKind.UNKNOWN_PROCESS, use.gpu, use.pid, ""
            )
        if self._is_group_server(use.pid, use.process, self._pods):
            return None
        owners, command = cgroup_path.owners_of(use.process.cgroups), use.process.command
        if owners:
            judged = (self._of_pod(use, owner, command) for owner in sorted(owners))
            return next((finding for finding in judged if finding is not None), None)
        if command[:COMMAND_LENGTH] in self._allowed:
            return None
        return (FindingKind.HOST_PROCESS, use.gpu, command), ProcessFinding(
            FindingKind.HOST_PROCESS, use.gpu, use.pid, command
        )

    def _of_pod(self, use: ListedProcess, owner: CgroupOwner, command: str) -> tuple[Key, ProcessFinding] | None:
        pod = self._pods.get(owner.pod)
        container = dict(pod.containers).get(owner.container, NO_CONTAINER) if pod else NO_CONTAINER
        if self._may_use(api_uid(owner.pod, pod), container, use.gpu):
            return None
        finding = ProcessFinding(FindingKind.NO_SHARE, use.gpu, use.pid, command, pod, owner.pod, container)
        return (FindingKind.NO_SHARE, use.gpu, f"{owner.pod}/{owner.container}"), finding

    def _may_use(self, pod_uid: PodUid, container: ContainerName, gpu: CardUuid) -> bool:
        """A container whose name the pod's status does not show yet may use what any container of its pod holds."""
        if container:
            return CardHolder(pod_uid, container, gpu) in self._held
        return (pod_uid, gpu) in self._holders


def by_kubelet_uid(pods: Iterable[BoundPod]) -> Mapping[KubeletPodUid, BoundPod]:
    """Return the pods by the UID in their cgroups; of two claims to a UID, the API's own counts."""
    return {pod.kubelet_uid: pod for pod in sorted(pods, key=lambda pod: not pod.is_mirror)}
