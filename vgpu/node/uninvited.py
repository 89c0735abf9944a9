"""Which processes use a card of which their container has no share. Pure.

An image or a ConfigMap may set NVIDIA_VISIBLE_DEVICES, a container may be privileged or mount /dev, and any process of
the host may open a card. Nothing of this passes the scheduler or the kubelet's devices, so it is found from outside:
NVML names the processes of each card, a process's cgroup names its container, and the node knows which container holds
devices of which card.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from vgpu.adapters.procfs import Process
from vgpu.node import cgroup_path
from vgpu.node.cgroup_path import Owner
from vgpu.node.pods import BoundPod

_COMM: Final = 15  # the kernel cuts the name of a command


class Kind(StrEnum):
    """What a finding is about."""

    NO_SHARE = "NoShare"
    HOST_PROCESS = "HostProcess"
    UNKNOWN_PROCESS = "UnknownProcess"


@dataclass(frozen=True, slots=True)
class Use:
    """A process that NVML lists for a card; `process` is None where /proc does not show it."""

    gpu: str
    pid: int
    process: Process | None


@dataclass(frozen=True, slots=True, order=True)
class Held:
    """A container holds devices of a card."""

    pod_uid: str
    container: str
    gpu: str


@dataclass(frozen=True, slots=True)
class Finding:
    """A use of a card without a share of it. Processes of one container are one finding; the lowest pid is named.

    Attributes:
        kind: what was found.
        gpu: UUID of the card.
        pid: of the process, as the device plugin sees it.
        command: name of the process, which the process may choose.
        pod: the pod, None outside of pods and for a pod that the API does not have.
        pod_uid: the kubelet's UID of the pod, empty outside of pods.
        container: name of the container, empty where it is not known.
    """

    kind: Kind
    gpu: str
    pid: int
    command: str
    pod: BoundPod | None = None
    pod_uid: str = ""
    container: str = ""

    @property
    def subject(self) -> str:
        """Who uses the card, for people."""
        process = f"process {self.pid} ({self.command})"
        match self.kind:
            case Kind.HOST_PROCESS:
                return f"host {process}"
            case Kind.UNKNOWN_PROCESS:
                return f"process {self.pid}, which /proc does not show"
        pod = f"{self.pod.namespace}/{self.pod.name}" if self.pod else f"with UID {self.pod_uid}"
        container = f" container {self.container}" if self.container else ""
        return f"pod {pod}{container} {process}"


Key = tuple[str, str, str]  # the kind, the card, and whose process


class Judge:
    """Knows the pods and what they hold at one moment."""

    def __init__(self, pods: Iterable[BoundPod], held: Collection[Held], allowed: Collection[str]) -> None:
        """`allowed` are the commands of host processes that may use cards, such as NVIDIA's daemons."""
        ordered = sorted(pods, key=lambda pod: not pod.is_mirror)  # of two claims to a UID, the API's own counts
        self._pods = {pod.kubelet_uid: pod for pod in ordered}
        self._held = held
        self._holders = {(each.pod_uid, each.gpu) for each in held}
        self._allowed = {command[:_COMM] for command in allowed}

    def findings(self, uses: Iterable[Use]) -> Mapping[Key, Finding]:
        """Return the uses without a share, by key."""
        found: dict[Key, Finding] = {}
        for use in sorted(uses, key=lambda use: (use.gpu, use.pid)):
            judged = self._judged(use)
            if judged is not None:
                found.setdefault(*judged)
        return found

    def _judged(self, use: Use) -> tuple[Key, Finding] | None:
        if use.process is None:
            return (Kind.UNKNOWN_PROCESS, use.gpu, str(use.pid)), Finding(Kind.UNKNOWN_PROCESS, use.gpu, use.pid, "")
        owners, command = cgroup_path.owners_of(use.process.cgroups), use.process.command
        if owners:
            judged = (self._of_pod(use, owner, command) for owner in sorted(owners))
            return next((each for each in judged if each is not None), None)
        if command[:_COMM] in self._allowed:
            return None
        return (Kind.HOST_PROCESS, use.gpu, command), Finding(Kind.HOST_PROCESS, use.gpu, use.pid, command)

    def _of_pod(self, use: Use, owner: Owner, command: str) -> tuple[Key, Finding] | None:
        pod = self._pods.get(owner.pod)
        container = dict(pod.containers).get(owner.container, "") if pod else ""
        if self._may_use(owner.pod, container, use.gpu):
            return None
        finding = Finding(Kind.NO_SHARE, use.gpu, use.pid, command, pod, owner.pod, container)
        return (Kind.NO_SHARE, use.gpu, f"{owner.pod}/{owner.container}"), finding

    def _may_use(self, pod_uid: str, container: str, gpu: str) -> bool:
        """A container whose name the pod's status does not show yet may use what any container of its pod holds."""
        if container:
            return Held(pod_uid, container, gpu) in self._held
        return (pod_uid, gpu) in self._holders
