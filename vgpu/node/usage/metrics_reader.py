"""Reads what the metrics of a node say: NVML's sensors, the regions, and what the plugin's other parts know.

NVML keeps samples of about 20 s, so they are read every second, whether or not the metrics are. Regions and
sensors are read when the metrics are; which containers there are is known from the last period.
"""

import asyncio
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Final, Protocol

from vgpu.adapters.metrics import MetricFamily
from vgpu.adapters.nvml.records import BusySamples, Gpu, Reading
from vgpu.adapters.procfs import HostProcess
from vgpu.adapters.slot_owners import SlotOwners
from vgpu.domain.asks.space import SpaceGroup
from vgpu.domain.cards import measured_card
from vgpu.domain.cards.measured_card import CardSensors
from vgpu.domain.cards.measured_use import WAIT_CAUSES, MeasuredUse
from vgpu.domain.formats import limits
from vgpu.domain.formats.limits import CardLimit
from vgpu.domain.formats.region import CardUse
from vgpu.domain.identifiers import NO_CONTAINER, NO_POD, CardUuid, KubeletPodUid, NodeName, PodUid
from vgpu.domain.json_types import JsonObject
from vgpu.domain.quantity import MIB
from vgpu.node.cards.inventory import InventoryState
from vgpu.node.containers import running
from vgpu.node.containers.allocations import Allocation, Holder
from vgpu.node.containers.pods import BoundPod
from vgpu.node.containers.running import ContainerKey
from vgpu.node.containers.state_files import StateFiles
from vgpu.node.processes import share_files, uninvited
from vgpu.node.processes.findings import ProcessFinding
from vgpu.node.processes.group_servers import GroupServers
from vgpu.node.processes.share_files import RegionAccount
from vgpu.node.processes.unlimited import ProcessGroup
from vgpu.node.space.directories import GroupOnCard
from vgpu.node.usage import dcgm_metrics, kernel_reports, metrics, process_owner, space_reports
from vgpu.node.usage.gpu_time import GpuTime, Use
from vgpu.node.usage.idle import IdleTimes
from vgpu.node.usage.long_kernels import KernelLengths
from vgpu.node.usage.meter import MemoryUse, UsageMeter
from vgpu.node.usage.metrics import CardReading, ContainerState, NodeReading

PERIOD_S: Final = 1.0  # a container that changes between turns and none has an error of one period
_NS: Final = 1e-9
NS_PER_MS: Final = 1e6


class MetricsDriver(Protocol):
    """What is asked of NVML."""

    def readings(self, gpus: Collection[CardUuid]) -> dict[CardUuid, Reading]:
        """Return what each card's sensors say; cards that do not answer are left out."""

    def busy_samples(self, since_us: Mapping[CardUuid, int]) -> dict[CardUuid, BusySamples]:
        """Return each card's samples after a time; cards that do not answer are left out."""


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
class _Known:
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


class MetricsReader:
    """The metrics of one node. `collect` may be called from any thread.

    `on_change` may be set: it is called in the event loop when `kernel_reports` or `space_reports` have changed.
    """

    def __init__(
        self,
        node: NodeName,
        version: str,
        driver: MetricsDriver,
        process: Callable[[int], HostProcess | None],
        files: StateFiles,
        sources: NodeSources,
        wall_clock: Callable[[], float],
        monotonic_ns: Callable[[], int],
        *,
        with_dcgm: bool,
    ) -> None:
        """`with_dcgm`: whether the names of NVIDIA's dcgm-exporter are served too. `process` reads a process of /proc.

        `wall_clock` returns seconds since 1970, `monotonic_ns` CLOCK_MONOTONIC, which regions contain.
        """
        self.on_change: Callable[[], None] = lambda: None
        self._wall_clock = wall_clock
        self._node = node
        self._version = version
        self._driver = driver
        self._files = files
        self._sources = sources
        self._with_dcgm = with_dcgm
        self._time = GpuTime()
        self._meter = UsageMeter()
        self._card_meter = UsageMeter()
        self._process = process
        self._slot_owners = SlotOwners()
        self._idle = IdleTimes(monotonic_ns)
        self._monotonic_ns = monotonic_ns
        self._kernels = KernelLengths()
        self._outside: Mapping[ContainerKey, int] = {}  # processes outside of their container's group
        self._known = _known(sources)
        self._reading = threading.Lock()
        self._reported: AbstractSet[ContainerKey] = frozenset()

    async def run(self, period_s: float = PERIOD_S) -> None:
        """Take NVML's samples every `period_s` seconds, until cancelled."""
        while True:
            before = (self.kernel_reports(), self._outside)
            self._known = _known(self._sources)
            await asyncio.to_thread(self._sample, self._known)
            if (self.kernel_reports(), self._outside) != before:
                self.on_change()
            await asyncio.sleep(period_s)

    def collect(self) -> list[MetricFamily]:
        """Return the values of all metrics. Blocks."""
        state = self.read()
        return [*metrics.families(state), *(dcgm_metrics.families(state) if self._with_dcgm else ())]

    def read(self) -> NodeReading:
        """Return the node's state. Blocks."""
        known = self._known
        accounts = self._sample(known)
        readings = self._driver.readings([gpu.card.uuid for gpu in known.cards.gpus])
        synthetic = {pod.uid for pod in known.pods.values() if pod.is_synthetic}
        outside = self.outside_group
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
            self._node,
            self._version,
            tuple(self._card(gpu, known, readings.get(gpu.card.uuid)) for gpu in known.cards.gpus),
            tuple(parts),
            known.findings,
            known.arbiter_runs,
            known.is_registered,
            sum(bool(account.problem) for account in accounts.values()),
            known.refusals,
            _group_faults(known, parts),
        )

    def kernel_reports(self, evicts: Collection[str] = ()) -> list[JsonObject]:
        """Return an entry for each pod whose kernels keep others waiting, as `status.refusals` of a GPUNode lists them.

        `evicts` are the reasons that evict pods.
        """
        indexes = {gpu.card.uuid: gpu.card.index for gpu in self._known.cards.gpus}
        kernels = self._kernels
        return kernel_reports.reports(kernels.long, kernels.endless_s, indexes, self._sources.pods(), evicts=evicts)

    def space_reports(self) -> list[JsonObject]:
        """Return an entry for each pod with processes outside of its group in space, as `kernel_reports`.

        The two have room for as many entries together as the GPUNode takes of kernels.
        """
        room = kernel_reports.MAX_REPORTED - len(self.kernel_reports())
        return space_reports.reports(self._outside, self._sources.pods(), room)

    @property
    def outside_group(self) -> Mapping[ContainerKey, int]:
        """How many processes of each member of a group in space are no clients of its server; of members only."""
        members = {pod.uid for pod in self._known.pods.values() if pod.space is not None}
        return {key: count for key, count in self._outside.items() if key[0] in members}

    def usage(self) -> list[MeasuredUse]:
        """Return what the containers have used, for the history."""
        with self._reading:
            return self._meter.report()

    def card_usage(self) -> list[JsonObject]:
        """Return how long the cards were busy, with what their sensors say now, as the GPUNode lists it. Blocks."""
        readings = self._driver.readings([gpu.card.uuid for gpu in self._known.cards.gpus])
        with self._reading:
            periods = self._card_meter.report()
        return measured_card.as_json(periods, {gpu: _sensors(reading) for gpu, reading in readings.items()})

    def _sample(self, known: _Known) -> dict[str, RegionAccount]:
        """Add the GPU time since the last call; return each allocation's account."""
        with self._reading:
            accounts = {
                allocation.id: share_files.read_account(self._files.region(allocation.id), self._slot_owners)
                for allocation in known.held.values()
            }
            turns = {
                (uid, container, gpu): use.gpu_ns * _NS
                for (uid, container), allocation in known.held.items()
                for gpu, use in accounts[allocation.id].cards.items()
            }
            since = self._time.since([gpu.card.uuid for gpu in known.cards.gpus])
            now_s = self._wall_clock()
            samples = self._driver.busy_samples(since)
            owners = self._owners(known, samples)
            self._time.add(samples, owners, turns, int(now_s * 1e6), self._group_members(known, samples))
            self._time.forget(known.held.keys() - (self._reported - known.running.keys()))
            self._reported = known.running.keys()
            held = self._held(known, accounts)
            self._outside = {
                key: max(accounts[allocation.id].outside_group, known.outside_spaces.get(key, 0))
                for key, allocation in known.running.items()
            }
            self._idle.look(held, self._time.containers, samples, owners, known.pods)
            self._kernels.look(held, samples, owners, self._monotonic_ns())
            counted = {use: total for use, total in self._time.containers.items() if use[:2] in known.running}
            seconds = dict.fromkeys(held, 0.0) | counted
            self._meter.add(
                seconds, _memory(known, accounts), int(now_s * 1000), self._idle.ms, _waits(known, accounts),
                {uid: allocation.holder.namespace for (uid, _), allocation in known.held.items() if allocation.holder},
            )  # fmt: skip
            busy = {(NO_POD, NO_CONTAINER, gpu): total for gpu, total in self._time.card.items()}
            self._card_meter.add(busy, {}, int(now_s * 1000))
            return accounts

    def _owners(self, known: _Known, samples: Mapping[CardUuid, BusySamples]) -> dict[tuple[CardUuid, int], Use | None]:
        """Return the containers of the processes that have samples; None for one without devices of the node.

        NVML lists fewer processes than it has samples of: not those that hold no memory, or began since the last look.
        """
        listed = {(key[2], use.pid): key for key, group in known.groups.items() for use in group.uses}
        sampled = {(gpu, pid) for gpu, sample in samples.items() for pid in sample.pids}
        found = process_owner.owners(sampled - listed.keys(), self._process, known.pods) | dict(listed)
        return {process: use if use and use[:2] in known.held else None for process, use in found.items()}

    def _group_members(
        self, known: _Known, samples: Mapping[CardUuid, BusySamples]
    ) -> dict[tuple[CardUuid, int], list[Use]]:
        """Return the containers that are members of a group in space on a card, by the process that is its server."""
        found: dict[tuple[CardUuid, int], list[Use]] = {}
        for gpu, sample in samples.items():
            for pid in sample.pids:
                process = self._process(pid)
                of = self._sources.servers.group_of(pid, process, known.pods) if process else None
                if of and of.card == gpu:
                    members = self._sources.servers.members(of)
                    found[gpu, pid] = [(*key, gpu) for key, held in known.held.items() if held.id in members]
        return found

    def _held(self, known: _Known, accounts: Mapping[str, RegionAccount]) -> dict[Use, CardUse | None]:
        """Return each container on each of its cards, with the region's account; without unreadable regions."""
        found: dict[Use, CardUse | None] = {}
        for (uid, container), allocation in known.running.items():
            account = accounts[allocation.id]
            if not account.problem:
                granted = {limit.gpu for limit in share_files.read_limits(self._files.limits(allocation.id))}
                gpus = {*granted, *account.cards} - {limits.ANY_GPU}
                found |= {(uid, container, gpu): account.cards.get(gpu) for gpu in gpus}
        return found

    def _card(self, gpu: Gpu, known: _Known, reading: Reading | None) -> CardReading:
        uuid, cards = gpu.card.uuid, known.cards
        return CardReading(
            gpu,
            cards.faults.get(uuid, ""),
            reading,
            gpu.card.slices(known.slice_mib) if uuid in cards.held.cards else cards.held.slices_of(uuid),
            uuid in cards.held.cards,
            self._time.card.get(uuid, 0.0),
            self._time.others.get(uuid, 0.0),
            known.xids.get(uuid, {}),
        )

    def _containers(self, allocation: Allocation, account: RegionAccount, known: _Known) -> list[ContainerState]:
        granted = {
            read_limit.gpu: read_limit for read_limit in share_files.read_limits(self._files.limits(allocation.id))
        }
        used = account.cards
        holder = allocation.holder
        if holder is None:
            return []
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
            holder,
            gpu,
            granted.memory_bytes if granted else None,
            granted.cores if granted else None,
            used.get(gpu),
            len(group.uses) if group else 0,
            group.memory_bytes if group else 0,
            self._time.containers.get(key, 0.0),
            self._time.sampled.get(key, 0.0),
            self._idle.ms.get(key),
            endless_kernel_s=self._kernels.endless_s.get(key),
        )

    def _living(self, group: ProcessGroup | None) -> ProcessGroup | None:
        """Return a group without the processes that have ended since the last look, which is seconds ago."""
        if group is None:
            return None
        return replace(group, uses=tuple(use for use in group.uses if self._process(use.pid) is not None))


def _known(sources: NodeSources) -> _Known:
    allocations = sources.allocations()
    return _Known(
        sources.cards(),
        {(holder.uid, holder.container): allocation for allocation in allocations if (holder := allocation.holder)},
        running.running(allocations, {pod.uid: pod for pod in sources.pods()}),
        {(group.pod.uid, group.container, group.gpu): group for group in sources.groups()},
        uninvited.by_kubelet_uid(sources.pods()),
        _counts(sources.findings()),
        {gpu: dict(counts) for gpu, counts in sources.xids().items()},
        sources.arbiter_runs(),
        sources.is_registered(),
        sources.refusals(),
        sources.slice_mib,
        sources.outside_spaces(),
        sources.group_faults(),
        {pod.uid: pod.space.group for pod in sources.pods() if pod.space is not None},
    )


def _group_faults(known: _Known, parts: Iterable[ContainerState]) -> dict[tuple[CardUuid, str], int]:
    """Return how often the server of each group with members has faulted, by the card and the group's name."""
    found: dict[tuple[CardUuid, str], int] = {}
    for part in parts:
        if group := known.space_groups.get(part.holder.uid):
            found[part.gpu, str(group)] = known.group_faults.get(GroupOnCard(part.gpu, group.directory), 0)
    return found


def _memory(known: _Known, accounts: Mapping[str, RegionAccount]) -> dict[Use, MemoryUse]:
    """Return each container's memory: by its region, or by NVML where it has none, such as on a whole card."""
    found = {key: MemoryUse(group.memory_bytes, group.memory_bytes) for key, group in known.groups.items()}
    for (uid, container), allocation in known.held.items():
        for gpu, use in accounts[allocation.id].cards.items():
            found[uid, container, gpu] = MemoryUse(use.used_bytes, use.peak_bytes)
    return found


def _waits(known: _Known, accounts: Mapping[str, RegionAccount]) -> dict[Use, tuple[float, ...]]:
    """Return for how many milliseconds each container's launches have waited, by cause, since it started."""
    return {
        (uid, container, gpu): tuple(getattr(use.activity, cause).ns / NS_PER_MS for cause in WAIT_CAUSES)
        for (uid, container), allocation in known.held.items()
        for gpu, use in accounts[allocation.id].cards.items()
    }


def _sensors(reading: Reading) -> CardSensors:
    used = reading.memory_used_bytes
    return CardSensors(
        None if used is None else -(-used // MIB), _rounded(reading.temperature_celsius), _rounded(reading.power_watts)
    )


def _rounded(value: float | None) -> int | None:
    return None if value is None else round(value)


def _counts(findings: Collection[ProcessFinding]) -> dict[str, int]:
    reasons = [finding.kind.reason for finding in findings]
    return {reason: reasons.count(reason) for reason in sorted(set(reasons))}
