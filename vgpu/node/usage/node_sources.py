"""What the plugin's parts know of the node's containers and cards, as functions and as a snapshot of one moment."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from vgpu.domain.asks.space import SpaceGroup
from vgpu.domain.identifiers import CardUuid, KubeletPodUid, PodUid
from vgpu.node.cards.inventory import InventoryState
from vgpu.node.containers import running
from vgpu.node.containers.allocations import Allocation
from vgpu.node.containers.bound_pod import BoundPod
from vgpu.node.containers.running import ContainerKey
from vgpu.node.processes import uninvited
from vgpu.node.processes.findings import ProcessFinding
from vgpu.node.processes.group_servers import GroupServers
from vgpu.node.processes.unlimited import ProcessGroup
from vgpu.node.space.directories import GroupOnCard
from vgpu.node.usage.gpu_time import Use


@dataclass(frozen=True, slots=True)
class NodeSources:
    """What the plugin's parts know now. The functions are called in the event loop.

    Attributes:
        cards: the inventory's state.
        allocations: the proven ones.
        groups: the processes of containers, as the last look has seen them.
        pods: of this node.
        findings: that count now.
        xids: number of XID errors by card and code.
        arbiter_runs: whether the arbiter runs; None where the node has none.
        is_registered: whether the kubelet takes the node's devices.
        refusals: number of containers that were refused at their start.
        slice_mib: MiB of a memory slice.
        servers: the MPS servers of groups in space.
        outside_spaces: how many processes of each member of such a group are no clients of MPS, by NVML.
        group_faults: how often the server of each such group has faulted.
    """

    cards: Callable[[], InventoryState]
    allocations: Callable[[], Collection[Allocation]]
    groups: Callable[[], Collection[ProcessGroup]]
    pods: Callable[[], Iterable[BoundPod]]
    findings: Callable[[], Collection[ProcessFinding]]
    xids: Callable[[], Mapping[CardUuid, Mapping[str, int]]]
    arbiter_runs: Callable[[], bool | None]
    is_registered: Callable[[], bool]
    refusals: Callable[[], int]
    slice_mib: int
    servers: GroupServers
    outside_spaces: Callable[[], Mapping[ContainerKey, int]]
    group_faults: Callable[[], Mapping[GroupOnCard, int]]


@dataclass(frozen=True, slots=True)
class SourcesSnapshot:
    """What the sources said at one moment.

    The GPU time of every container in `held` is added up, so that none is missed of one whose start the API server
    shows late; only containers in `running` are reported.
    """

    cards: InventoryState
    held: Mapping[ContainerKey, Allocation]
    running: Mapping[ContainerKey, Allocation]
    groups: Mapping[Use, ProcessGroup]
    pods: Mapping[KubeletPodUid, BoundPod]
    findings: Mapping[str, int]
    xids: Mapping[CardUuid, Mapping[str, int]]
    arbiter_runs: bool | None
    is_registered: bool
    refusals: int
    slice_mib: int
    outside_spaces: Mapping[ContainerKey, int]
    group_faults: Mapping[GroupOnCard, int]
    space_groups: Mapping[PodUid, SpaceGroup]


def snapshot(sources: NodeSources) -> SourcesSnapshot:
    """Return what the sources say now. Call it in the event loop."""
    allocations = sources.allocations()
    return SourcesSnapshot(
        cards=sources.cards(),
        held={
            (holder.uid, holder.container): allocation for allocation in allocations if (holder := allocation.holder)
        },
        running=running.running(allocations, {pod.uid: pod for pod in sources.pods()}),
        groups={(group.pod.uid, group.container, group.gpu): group for group in sources.groups()},
        pods=uninvited.by_kubelet_uid(sources.pods()),
        findings=_counts(sources.findings()),
        xids={gpu: dict(counts) for gpu, counts in sources.xids().items()},
        arbiter_runs=sources.arbiter_runs(),
        is_registered=sources.is_registered(),
        refusals=sources.refusals(),
        slice_mib=sources.slice_mib,
        outside_spaces=sources.outside_spaces(),
        group_faults=sources.group_faults(),
        space_groups={pod.uid: pod.space.group for pod in sources.pods() if pod.space is not None},
    )


def _counts(findings: Collection[ProcessFinding]) -> dict[str, int]:
    reasons = [finding.kind.reason for finding in findings]
    return {reason: reasons.count(reason) for reason in sorted(set(reasons))}
