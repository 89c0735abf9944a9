"""What is found about processes that use cards: a use without a share, or a share without its limits."""

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from vgpu.adapters.procfs import FileId, HostProcess
from vgpu.domain import names
from vgpu.domain.identifiers import NO_CONTAINER, NOT_IN_A_POD, CardUuid, ContainerName, KubeletPodUid
from vgpu.node.containers.bound_pod import BoundPod


class FindingKind(StrEnum):
    """What a finding is about."""

    NO_SHARE = "NoShare"
    HOST_PROCESS = "HostProcess"
    UNKNOWN_PROCESS = "UnknownProcess"

    NO_LIMITER = names.LIMITER_NOT_LOADED
    OTHER_FILES = names.LIMITER_FILES_COVERED
    BEYOND_LIMIT = names.MEMORY_BEYOND_LIMIT
    REGION_BELOW_USE = names.REGION_BELOW_USE

    @property
    def is_uninvited(self) -> bool:
        """Whether the finding is a use without a share; else it is a share without its limits."""
        return self in _UNINVITED

    @property
    def reason(self) -> str:
        """The reason of a report about a pod, and of its Event."""
        return names.CARD_USED_WITHOUT_SHARE if self.is_uninvited else str(self)


_UNINVITED: Final = frozenset({FindingKind.NO_SHARE, FindingKind.HOST_PROCESS, FindingKind.UNKNOWN_PROCESS})


@dataclass(frozen=True, slots=True)
class ListedProcess:
    """A process that NVML lists for a card.

    Attributes:
        gpu: UUID of the card.
        pid: of the process, as the device plugin sees it.
        process: None where /proc does not show the process.
        memory_bytes: memory of the card, by NVML; None where NVML does not tell.
        mapped: files that the process has mapped as a program or as shared memory; None where they were not read, or
            the process has ended.
    """

    gpu: CardUuid
    pid: int
    process: HostProcess | None
    memory_bytes: int | None = None
    mapped: Collection[FileId] | None = None


@dataclass(frozen=True, slots=True)
class ProcessFinding:
    """A finding. Processes of one container on one card are one finding of a kind; the lowest pid is named.

    Attributes:
        kind: what was found.
        gpu: UUID of the card.
        pid: of the process, as the device plugin sees it.
        command: name of the process, which the process may choose.
        pod: the pod, None outside of pods and for a pod that the API does not have.
        pod_uid: the kubelet's UID of the pod, empty outside of pods.
        container: name of the container, empty where it is not known.
        detail: what is wrong, for people; empty for a use without a share.
        is_certain: whether the finding suffices to evict the pod where a setting asks for that.
    """

    kind: FindingKind
    gpu: CardUuid
    pid: int
    command: str
    pod: BoundPod | None = None
    pod_uid: KubeletPodUid = NOT_IN_A_POD
    container: ContainerName = NO_CONTAINER
    detail: str = ""
    is_certain: bool = True

    @property
    def subject(self) -> str:
        """Who uses the card, for people."""
        process = f"process {self.pid} ({self.command})"
        match self.kind:
            case FindingKind.HOST_PROCESS:
                return f"host {process}"
            case FindingKind.UNKNOWN_PROCESS:
                return f"process {self.pid}, which /proc does not show"
        pod = f"{self.pod.namespace}/{self.pod.name}" if self.pod else f"with UID {self.pod_uid}"
        container = f" container {self.container}" if self.container else ""
        return f"pod {pod}{container} {process}"


Key = tuple[str, str, str]  # the kind, the card, and whose process
