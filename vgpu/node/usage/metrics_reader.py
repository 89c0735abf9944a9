"""Reads what the metrics of a node say: NVML's sensors, the regions, and what the plugin's other parts know.

Regions and sensors are read when the metrics are; what was used since is added up by `sampler`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from vgpu.adapters.metrics import MetricFamily
from vgpu.adapters.nvml.records import Gpu, Reading
from vgpu.adapters.procfs import HostProcess
from vgpu.domain.formats import limits
from vgpu.domain.formats.limits import CardLimit
from vgpu.domain.formats.region import CardUse
from vgpu.domain.identifiers import CardUuid, NodeName
from vgpu.node.containers.allocations import Allocation, Holder
from vgpu.node.containers.state_files import StateFiles
from vgpu.node.processes import share_files
from vgpu.node.processes.share_files import RegionAccount
from vgpu.node.processes.unlimited import ProcessGroup
from vgpu.node.space.directories import GroupOnCard
from vgpu.node.usage import dcgm_metrics, metrics
from vgpu.node.usage.gpu_time import Use
from vgpu.node.usage.metrics import CardReading, ContainerState, NodeReading
from vgpu.node.usage.node_sources import SourcesSnapshot
from vgpu.node.usage.sampler import UsageDriver, UsageSampler


class MetricsReader:
    """The metrics of one node. `collect` may be called from any thread."""

    def __init__(
        self,
        node: NodeName,
        version: str,
        driver: UsageDriver,
        process: Callable[[int], HostProcess | None],
        files: StateFiles,
        sampler: UsageSampler,
        *,
        with_dcgm: bool,
    ) -> None:
        """`process` reads a process of /proc. `with_dcgm`: names of NVIDIA's dcgm-exporter are served too."""
        self._node = node
        self._version = version
        self._driver = driver
        self._process = process
        self._files = files
        self._sampler = sampler
        self._with_dcgm = with_dcgm

    def collect(self) -> list[MetricFamily]:
        """Return the values of all metrics. Blocks."""
        state = self.read()
        return [*metrics.families(state), *(dcgm_metrics.families(state) if self._with_dcgm else ())]

    def read(self) -> NodeReading:
        """Return the node's state. Blocks."""
        known = self._sampler.known
        accounts = self._sampler.sample(known)
        readings = self._driver.readings([gpu.card.uuid for gpu in known.cards.gpus])
        synthetic = {pod.uid for pod in known.pods.values() if pod.is_synthetic}
        outside = self._sampler.outside_group
        parts = [
            replace(
                part,
                is_synthetic=part.holder.uid in synthetic,
                outside_group=outside.get((part.holder.uid, part.holder.container)),
                space_group=str(known.space_groups.get(part.holder.uid, "")),
            )
            for allocation in known.running.values()
            for part in self._containers(allocation, accounts[allocation.id], known)
        ]
        return NodeReading(
            node=self._node,
            version=self._version,
            cards=tuple(self._card(gpu, known, readings.get(gpu.card.uuid)) for gpu in known.cards.gpus),
            containers=tuple(parts),
            findings=known.findings,
            arbiter_runs=known.arbiter_runs,
            is_registered=known.is_registered,
            unread_regions=sum(bool(account.problem) for account in accounts.values()),
            refusals=known.refusals,
            group_faults=_group_faults(known, parts),
        )

    def _card(self, gpu: Gpu, known: SourcesSnapshot, reading: Reading | None) -> CardReading:
        uuid, cards = gpu.card.uuid, known.cards
        return CardReading(
            gpu=gpu,
            fault=cards.faults.get(uuid, ""),
            reading=reading,
            held_slices=gpu.card.slices(known.slice_mib) if uuid in cards.held.cards else cards.held.slices_of(uuid),
            held_whole=uuid in cards.held.cards,
            busy_s=self._sampler.time.card.get(uuid, 0.0),
            others_s=self._sampler.time.others.get(uuid, 0.0),
            xids=known.xids.get(uuid, {}),
        )

    def _containers(
        self, allocation: Allocation, account: RegionAccount, known: SourcesSnapshot
    ) -> list[ContainerState]:
        holder, used = allocation.holder, account.cards
        if holder is None:
            return []
        granted = {limit.gpu: limit for limit in share_files.read_limits(self._files.limits(allocation.id))}
        gpus = sorted({*granted, *used} - {limits.ANY_GPU})
        return [self._container(holder, gpu, granted.get(gpu), used, known.groups) for gpu in gpus]

    def _container(
        self,
        holder: Holder,
        gpu: CardUuid,
        granted: CardLimit | None,
        used: Mapping[CardUuid, CardUse],
        groups: Mapping[Use, ProcessGroup],
    ) -> ContainerState:
        key = (holder.uid, holder.container, gpu)
        group = self._living(groups.get(key))
        return ContainerState(
            holder=holder,
            gpu=gpu,
            limit_bytes=granted.memory_bytes if granted else None,
            cores=granted.cores if granted else None,
            use=used.get(gpu),
            processes=len(group.uses) if group else 0,
            nvml_bytes=group.memory_bytes if group else 0,
            gpu_s=self._sampler.time.containers.get(key, 0.0),
            sampled_s=self._sampler.time.sampled.get(key, 0.0),
            idle_ms=self._sampler.idle.ms.get(key),
            endless_kernel_s=self._sampler.kernels.endless_s.get(key),
        )

    def _living(self, group: ProcessGroup | None) -> ProcessGroup | None:
        """Return a group without the processes that have ended since the last look, which is seconds ago."""
        if group is None:
            return None
        return replace(group, uses=tuple(use for use in group.uses if self._process(use.pid) is not None))


def _group_faults(known: SourcesSnapshot, parts: Iterable[ContainerState]) -> dict[tuple[CardUuid, str], int]:
    """Return how often the server of each group with members has faulted, by the card and the group's name."""
    found: dict[tuple[CardUuid, str], int] = {}
    for part in parts:
        if group := known.space_groups.get(part.holder.uid):
            found[part.gpu, str(group)] = known.group_faults.get(GroupOnCard(part.gpu, group.directory), 0)
    return found
