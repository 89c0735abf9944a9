"""Which containers use a card of which they have a share, but without the share's limits. Pure.

A program may be linked statically, bring its own loader, or run where `/etc/ld.so.preload` is hidden or covered: then
its process has not mapped the container's copy of the limiter. It may have another file in place of the limits or of
the region: then it has not mapped the container's own. And whatever runs in the process, NVML's memory of the
container's processes is compared with the limit, and with the region's account.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from vgpu.adapters.procfs import FileId
from vgpu.domain.identifiers import CardUuid, ContainerName, KubeletPodUid, PodUid
from vgpu.domain.quantity import MIB
from vgpu.node.containers.bound_pod import BoundPod
from vgpu.node.processes import cgroup_path, uninvited
from vgpu.node.processes.findings import FindingKind, Key, ListedProcess, ProcessFinding

Holder = tuple[PodUid, ContainerName]  # the API's UID of a pod, and the name of a container


@dataclass(frozen=True, slots=True)
class Share:
    """What the node knows of a container with a share.

    Attributes:
        libraries: copies of the limiter of which one must be mapped.
        files: what else must be mapped, by path in the container.
        limits: memory limit in bytes by card.
        charged: the most that the region says of each card's memory, while NVML was asked: bytes by card. Cards that
            the region does not know are left out. None where the region cannot be judged: its layout is that of
            another release.
        problem: why the region cannot be read; empty where it can.
        is_whole: whether the container holds whole cards, which have no limits.
    """

    libraries: frozenset[FileId] = frozenset()
    files: Mapping[str, frozenset[FileId]] = field(default_factory=dict)
    limits: Mapping[CardUuid, int] = field(default_factory=dict)
    charged: Mapping[CardUuid, int] | None = None
    problem: str = ""
    is_whole: bool = False


@dataclass(frozen=True, slots=True)
class ProcessGroup:
    """The processes of one container on one card, by pid."""

    pod: BoundPod
    container: ContainerName
    gpu: CardUuid
    uses: tuple[ListedProcess, ...]

    def finding(
        self, kind: FindingKind, use: ListedProcess, detail: str, *, is_certain: bool = True
    ) -> tuple[Key, ProcessFinding]:
        """Return a finding about one of the processes, with its key."""
        uid, command = self.pod.kubelet_uid, use.process.command if use.process else ""
        key = (kind, self.gpu, f"{uid}/{self.container}")
        return key, ProcessFinding(
            kind=kind,
            gpu=self.gpu,
            pid=use.pid,
            command=command,
            pod=self.pod,
            pod_uid=uid,
            container=self.container,
            detail=detail,
            is_certain=is_certain,
        )

    @property
    def memory_bytes(self) -> int:
        """Memory that NVML counts for the processes."""
        return sum(use.memory_bytes or 0 for use in self.uses)

    @property
    def largest(self) -> ListedProcess:
        """The process that uses the most memory."""
        return max(self.uses, key=lambda use: use.memory_bytes or 0)


def findings(
    uses: Iterable[ListedProcess], pods: Iterable[BoundPod], shares: Mapping[Holder, Share], tolerance_bytes: int
) -> Mapping[Key, ProcessFinding]:
    """Return the shares that are used without their limits, by key.

    NVML may count up to `tolerance_bytes` more for a container than the limit or the region says: code that a launch
    loads is charged up to 0.1 s later, and the first contexts of a container may exceed its limit (docs/adr/0013).
    """
    found: dict[Key, ProcessFinding] = {}
    for group in groups(uses, uninvited.by_kubelet_uid(pods)):
        share = shares.get((group.pod.uid, group.container))
        if share is not None and not share.is_whole:
            found |= dict(_judged(group, share, tolerance_bytes))
    return found


def groups(uses: Iterable[ListedProcess], pods: Mapping[KubeletPodUid, BoundPod]) -> Iterator[ProcessGroup]:
    """Yield the processes whose container is known: the status of a pod shows its containers a little late."""
    grouped: dict[tuple[KubeletPodUid, ContainerName, CardUuid], list[ListedProcess]] = {}
    for use in sorted(uses, key=lambda use: use.pid):
        for owner in cgroup_path.owners_of(use.process.cgroups) if use.process else ():
            pod = pods.get(owner.pod)
            container = dict(pod.containers).get(owner.container) if pod else None
            if container:
                grouped.setdefault((owner.pod, container, use.gpu), []).append(use)
    for (uid, container, gpu), members in grouped.items():
        yield ProcessGroup(pods[uid], container, gpu, tuple(members))


def _judged(group: ProcessGroup, share: Share, tolerance: int) -> Iterator[tuple[Key, ProcessFinding]]:
    without = next(_without_limiter(group, share), None)
    if without is not None:
        yield without
    excess = (
        None
        if without is not None and without[1].kind is FindingKind.NO_LIMITER
        else _below_use(group, share, tolerance)
    )
    if excess is not None:
        yield excess
    limit, used = share.limits.get(group.gpu), group.memory_bytes
    if limit is not None and used > limit + tolerance:
        detail = f"the container uses {_mib(used)} of {_mib(limit)}"
        is_certain = without is not None or excess is not None
        yield group.finding(FindingKind.BEYOND_LIMIT, group.largest, detail, is_certain=is_certain)


def _without_limiter(group: ProcessGroup, share: Share) -> Iterator[tuple[Key, ProcessFinding]]:
    for use in group.uses:
        if use.mapped is None:
            continue
        if share.libraries and share.libraries.isdisjoint(use.mapped):
            detail = "the process has not loaded the container's limiter, so nothing limits its memory and time"
            yield group.finding(FindingKind.NO_LIMITER, use, detail)
            continue
        missing = [path for path, accepted in share.files.items() if accepted and accepted.isdisjoint(use.mapped)]
        if missing:
            detail = f"the limiter of the process reads another file than the container's {' and '.join(missing)}"
            yield group.finding(FindingKind.OTHER_FILES, use, detail)


def _below_use(group: ProcessGroup, share: Share, tolerance: int) -> tuple[Key, ProcessFinding] | None:
    if share.charged is None:
        return None
    charged, used = share.charged.get(group.gpu, 0), group.memory_bytes
    if used <= charged + tolerance:
        return None
    said = f"the region cannot be read ({share.problem})" if share.problem else f"the region says {_mib(charged)}"
    return group.finding(FindingKind.REGION_BELOW_USE, group.largest, f"NVML counts {_mib(used)}, {said}")


def _mib(amount: int) -> str:
    return f"{amount // MIB} MiB"
