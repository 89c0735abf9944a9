"""Samples every second what the containers of a node use: GPU time, idle time, memory, long kernels.

NVML keeps samples of about 20 s, so they are read every second, whether or not anybody asks for metrics. Which
containers there are is known from the last period.
"""

import asyncio
import threading
from collections.abc import Callable, Collection, Mapping
from collections.abc import Set as AbstractSet
from typing import Final, Protocol

from vgpu.adapters.nvml.records import BusySamples, Reading
from vgpu.adapters.procfs import HostProcess
from vgpu.adapters.slot_owners import SlotOwners
from vgpu.domain.cards import measured_card
from vgpu.domain.cards.measured_card import CardSensors
from vgpu.domain.cards.measured_use import WAIT_CAUSES, MeasuredUse
from vgpu.domain.formats import limits
from vgpu.domain.formats.region import CardUse
from vgpu.domain.identifiers import NO_CONTAINER, NO_POD, CardUuid
from vgpu.domain.json_types import JsonObject
from vgpu.domain.quantity import MIB
from vgpu.node.containers.running import ContainerKey
from vgpu.node.containers.state_files import StateFiles
from vgpu.node.processes import share_files
from vgpu.node.processes.share_files import RegionAccount
from vgpu.node.usage import kernel_reports, node_sources, process_owner, space_reports
from vgpu.node.usage.gpu_time import GpuTime, Use
from vgpu.node.usage.idle import IdleTimes
from vgpu.node.usage.long_kernels import KernelLengths
from vgpu.node.usage.meter import MemoryUse, UsageMeter
from vgpu.node.usage.node_sources import NodeSources, SourcesSnapshot

PERIOD_S: Final = 1.0  # a container that changes between turns and none has an error of one period
_NS: Final = 1e-9
NS_PER_MS: Final = 1e6


class UsageDriver(Protocol):
    """What is asked of NVML."""

    def readings(self, gpus: Collection[CardUuid]) -> dict[CardUuid, Reading]:
        """Return what each card's sensors say; cards that do not answer are left out."""

    def busy_samples(self, since_us: Mapping[CardUuid, int]) -> dict[CardUuid, BusySamples]:
        """Return each card's samples after a time; cards that do not answer are left out."""


class UsageSampler:
    """Adds up what the containers of one node use. `sample` may be called from any thread.

    `on_change` may be set: it is called in the event loop when `kernel_reports` or `space_reports` have changed.
    """

    def __init__(
        self,
        driver: UsageDriver,
        process: Callable[[int], HostProcess | None],
        files: StateFiles,
        sources: NodeSources,
        wall_clock: Callable[[], float],
        monotonic_ns: Callable[[], int],
    ) -> None:
        """`process` reads a process of /proc.

        `wall_clock` returns seconds since 1970, `monotonic_ns` CLOCK_MONOTONIC, which regions contain.
        """
        self.on_change: Callable[[], None] = lambda: None
        self.known = node_sources.snapshot(sources)  # of the last period
        self.time = GpuTime()
        self.idle = IdleTimes(monotonic_ns)
        self.kernels = KernelLengths()
        self._wall_clock = wall_clock
        self._driver = driver
        self._files = files
        self._sources = sources
        self._meter = UsageMeter()
        self._card_meter = UsageMeter()
        self._process = process
        self._slot_owners = SlotOwners()
        self._monotonic_ns = monotonic_ns
        self._outside: Mapping[ContainerKey, int] = {}  # processes outside of their container's group
        self._reading = threading.Lock()
        self._reported: AbstractSet[ContainerKey] = frozenset()

    async def run(self, period_s: float = PERIOD_S) -> None:
        """Take NVML's samples every `period_s` seconds, until cancelled."""
        while True:
            before = (self.kernel_reports(), self._outside)
            self.known = node_sources.snapshot(self._sources)
            await asyncio.to_thread(self.sample, self.known)
            if (self.kernel_reports(), self._outside) != before:
                self.on_change()
            await asyncio.sleep(period_s)

    def kernel_reports(self, evicts: Collection[str] = ()) -> list[JsonObject]:
        """Return an entry for each pod whose kernels keep others waiting, as `status.refusals` of a GPUNode lists them.

        `evicts` are the reasons that evict pods.
        """
        indexes = {gpu.card.uuid: gpu.card.index for gpu in self.known.cards.gpus}
        kernels = self.kernels
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
        members = {pod.uid for pod in self.known.pods.values() if pod.space is not None}
        return {key: count for key, count in self._outside.items() if key[0] in members}

    def usage(self) -> list[MeasuredUse]:
        """Return what the containers have used, for the history."""
        with self._reading:
            return self._meter.report()

    def card_usage(self) -> list[JsonObject]:
        """Return how long the cards were busy, with what their sensors say now, as the GPUNode lists it. Blocks."""
        readings = self._driver.readings([gpu.card.uuid for gpu in self.known.cards.gpus])
        with self._reading:
            periods = self._card_meter.report()
        return measured_card.as_json(periods, {gpu: _sensors(reading) for gpu, reading in readings.items()})

    def sample(self, known: SourcesSnapshot) -> dict[str, RegionAccount]:
        """Add the GPU time since the last call; return the account of each allocation, by its ID. Blocks."""
        with self._reading:
            accounts = {
                allocation.id: share_files.read_account(self._files.region(allocation.id), self._slot_owners)
                for allocation in known.held.values()
            }
            since = self.time.since([gpu.card.uuid for gpu in known.cards.gpus])
            now_s = self._wall_clock()
            samples = self._driver.busy_samples(since)
            owners, members = self._owners(known, samples), self._group_members(known, samples)
            self.time.add(samples, owners, _turns(known, accounts), int(now_s * 1e6), members)
            self.time.forget(known.held.keys() - (self._reported - known.running.keys()))
            self._reported = known.running.keys()
            held = self._held(known, accounts)
            self._outside = {
                key: max(accounts[allocation.id].outside_group, known.outside_spaces.get(key, 0))
                for key, allocation in known.running.items()
            }
            self.idle.look(held, self.time.containers, samples, owners, known.pods)
            self.kernels.look(held, samples, owners, self._monotonic_ns())
            self._feed_meters(known, accounts, held, int(now_s * 1000))
            return accounts

    def _feed_meters(
        self, known: SourcesSnapshot, accounts: Mapping[str, RegionAccount], held: Collection[Use], now_ms: int
    ) -> None:
        """Give the meters of the history what containers and cards have used until now."""
        counted = {use: total for use, total in self.time.containers.items() if use[:2] in known.running}
        seconds = dict.fromkeys(held, 0.0) | counted
        self._meter.add(
            seconds, _memory(known, accounts), now_ms, self.idle.ms, _waits(known, accounts),
            {uid: allocation.holder.namespace for (uid, _), allocation in known.held.items() if allocation.holder},
        )  # fmt: skip
        busy = {(NO_POD, NO_CONTAINER, gpu): total for gpu, total in self.time.card.items()}
        self._card_meter.add(busy, {}, now_ms)

    def _owners(
        self, known: SourcesSnapshot, samples: Mapping[CardUuid, BusySamples]
    ) -> dict[tuple[CardUuid, int], Use | None]:
        """Return the containers of the processes that have samples; None for one without devices of the node.

        NVML lists fewer processes than it has samples of: not those that hold no memory, or began since the last look.
        """
        listed = {(key[2], use.pid): key for key, group in known.groups.items() for use in group.uses}
        sampled = {(gpu, pid) for gpu, sample in samples.items() for pid in sample.pids}
        found = process_owner.owners(sampled - listed.keys(), self._process, known.pods) | dict(listed)
        return {process: use if use and use[:2] in known.held else None for process, use in found.items()}

    def _group_members(
        self, known: SourcesSnapshot, samples: Mapping[CardUuid, BusySamples]
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

    def _held(self, known: SourcesSnapshot, accounts: Mapping[str, RegionAccount]) -> dict[Use, CardUse | None]:
        """Return each container on each of its cards, with the region's account; without unreadable regions."""
        found: dict[Use, CardUse | None] = {}
        for (uid, container), allocation in known.running.items():
            account = accounts[allocation.id]
            if not account.problem:
                granted = {limit.gpu for limit in share_files.read_limits(self._files.limits(allocation.id))}
                gpus = {*granted, *account.cards} - {limits.ANY_GPU}
                found |= {(uid, container, gpu): account.cards.get(gpu) for gpu in gpus}
        return found


def _turns(known: SourcesSnapshot, accounts: Mapping[str, RegionAccount]) -> dict[Use, float]:
    """Return the seconds of GPU time that each container was charged for its turns, by its region."""
    return {
        (uid, container, gpu): use.gpu_ns * _NS
        for (uid, container), allocation in known.held.items()
        for gpu, use in accounts[allocation.id].cards.items()
    }


def _memory(known: SourcesSnapshot, accounts: Mapping[str, RegionAccount]) -> dict[Use, MemoryUse]:
    """Return each container's memory: by its region, or by NVML where it has none, such as on a whole card."""
    found = {key: MemoryUse(group.memory_bytes, group.memory_bytes) for key, group in known.groups.items()}
    for (uid, container), allocation in known.held.items():
        for gpu, use in accounts[allocation.id].cards.items():
            found[uid, container, gpu] = MemoryUse(use.used_bytes, use.peak_bytes)
    return found


def _waits(known: SourcesSnapshot, accounts: Mapping[str, RegionAccount]) -> dict[Use, tuple[float, ...]]:
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
