"""Looks every few seconds for processes that use a card without a share, or without the limits of their share.

Each look asks NVML once for the processes of each card, and /proc for each process. A change is confirmed by another
look a second later, so that a report takes the period and a second. Cards divided by MIG are not looked at: vgpushare
gives none of them out. A card that does not answer keeps its findings.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from vgpu.adapters.nvml.records import Gpu
from vgpu.adapters.procfs import FileId, HostProcess
from vgpu.domain.identifiers import CardUuid, KubeletPodUid
from vgpu.node.containers.allocations import Allocation
from vgpu.node.containers.bound_pod import BoundPod, kubelet_uid_of_scheduled
from vgpu.node.containers.card_holders import CardHolder
from vgpu.node.containers.state_files import StateFiles
from vgpu.node.gpunode.gpunode_status import NodeCondition
from vgpu.node.processes import cgroup_path, finding_reports, share_files, space_clients, uninvited, unlimited
from vgpu.node.processes.findings import Key, ListedProcess, ProcessFinding
from vgpu.node.processes.sightings import Sightings
from vgpu.node.processes.uninvited import IsGroupServer, UseJudge
from vgpu.node.processes.unlimited import Holder, ProcessGroup, Share

if TYPE_CHECKING:
    from vgpu.node.processes.space_clients import ProcessOnCard

CONFIRM_S: Final = 1.0
_NO_HOST_PID: Final = (
    "NoHostPID",
    "the device plugin sees no processes of the host: set hostPID: true in its DaemonSet",
)
_NOT_KNOWN: Final = ("NotKnown", "NVML has not named the processes of every card")
_NO_FILE_IDS: Final = (
    "FilesNotComparable",
    "the kernel does not tell which files a process has mapped: the state directory is on a file system that hides it",
)

log = logging.getLogger(__name__)


class ProcessDriver(Protocol):
    """What is asked of NVML."""

    def processes(self, gpus: Iterable[CardUuid]) -> dict[CardUuid, dict[int, int | None]]:
        """Return the processes of each card: pid, and bytes of memory; cards that do not answer are left out."""

    def mps_clients(self, gpus: Iterable[CardUuid]) -> dict[CardUuid, frozenset[int]]:
        """Return the processes of each card that are clients of MPS servers; cards that do not tell are left out."""


class Processes(Protocol):
    """What is asked of /proc."""

    def process(self, pid: int) -> HostProcess | None:
        """Return a process, None where there is none."""

    def mapped(self, pids: Collection[int]) -> dict[int, frozenset[FileId]]:
        """Return the files that processes have mapped; processes that have ended are left out."""

    def mountinfos(self) -> Mapping[int, str]:
        """Return the mounts of every process, by pid; processes that have ended are left out."""

    def tells_files_apart(self, path: Path) -> bool:
        """Whether a mapping of a file can be told from that of another file of its file system."""


@dataclass(frozen=True, slots=True)
class NodeKnowledge:
    """What the node knows, to judge the processes by; every function is called in the event loop.

    Attributes:
        gpus: the cards.
        pods: of this node.
        held: which container holds devices of which card.
        allocations: the proven ones.
        is_group_server: whether a process is the MPS server of a group in space; called in a thread.
    """

    gpus: Callable[[], Collection[Gpu]]
    pods: Callable[[], Iterable[BoundPod]]
    held: Callable[[], Collection[CardHolder]]
    allocations: Callable[[], Collection[Allocation]]
    is_group_server: IsGroupServer = lambda *_: False


@dataclass(frozen=True, slots=True)
class ProcessWatchSettings:
    """The settings of the watch.

    Attributes:
        allowed: commands of host processes that may use cards.
        period_s: seconds between two looks.
        tolerance_bytes: how much more memory than a limit or a region NVML may count for a container.
        evicts: reasons for which pods with a controller are evicted.
        tells_files_apart: whether mapped files can be compared with files of the state directory.
    """

    allowed: Collection[str]
    period_s: float
    tolerance_bytes: int
    evicts: Collection[str] = ()
    tells_files_apart: bool = True


@dataclass(frozen=True, slots=True)
class _Seen:
    """What one look has seen: the uses by card, for the cards that answered, the shares, and the clients of MPS."""

    uses: Mapping[CardUuid, list[ListedProcess]] = field(default_factory=dict)
    shares: Mapping[Holder, Share] = field(default_factory=dict)
    clients: Mapping[CardUuid, frozenset[int]] = field(default_factory=dict)

    @property
    def every(self) -> list[ListedProcess]:
        return [use for uses in self.uses.values() for use in uses]


class ProcessWatch:
    """The findings of one node. `on_change` may be set: it is called when they change.

    `groups` are the processes of the containers as the last look has seen them, `outside_spaces` how many processes of
    each member of a group in space are no clients of MPS, as two looks in succession have seen.
    """

    def __init__(
        self,
        driver: ProcessDriver,
        processes: Processes,
        known: NodeKnowledge,
        files: StateFiles,
        rules: ProcessWatchSettings,
        own_pid: int,
    ) -> None:
        self.on_change: Callable[[], None] = lambda: None
        self._driver = driver
        self._processes = processes
        self._known = known
        self._files = files
        self._rules = rules
        self._own_pid = own_pid
        self._uninvited, self._unlimited = Sightings(), Sightings()
        self._silent: tuple[CardUuid, ...] | None = None
        self._is_blind = False
        self.groups: tuple[ProcessGroup, ...] = ()
        self.outside_spaces: Mapping[Holder, int] = {}
        self._outside_before: frozenset[ProcessOnCard] = frozenset()

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            is_open = await self.look()
            await asyncio.sleep(min(CONFIRM_S, self._rules.period_s) if is_open else self._rules.period_s)

    async def look(self) -> bool:
        """Look once; return whether another look soon would change something."""
        before = (self.reports(), self.conditions())
        cards = [gpu.card.uuid for gpu in self._known.gpus() if not gpu.mig_enabled]
        self._is_blind = _has_own_pids(self._processes, self._own_pid)
        allocations = self._known.allocations()
        has_members = any(pod.space for pod in self._known.pods())
        seen = _Seen() if self._is_blind else await asyncio.to_thread(self._see, cards, allocations, has_members)
        self._silent = tuple(card for card in cards if card not in seen.uses)
        is_open = await self._judge(seen)
        if (self.reports(), self.conditions()) != before:
            self.on_change()
        return is_open

    def findings(self) -> list[ProcessFinding]:
        """Return the findings that count, oldest first."""
        return [*self._uninvited.confirmed.values(), *self._unlimited.confirmed.values()]

    def reports(self) -> list[dict[str, Any]]:
        """Return an entry for each pod that the API has, as `status.refusals` of a GPUNode lists them."""
        return finding_reports.reports(self.findings(), self._index, evicts=self._rules.evicts)

    def conditions(self) -> tuple[NodeCondition, ...]:
        """Return the conditions of the GPUNode."""
        problem = _NO_HOST_PID if self._is_blind else _NOT_KNOWN if self._silent is None or self._silent else None
        incomparable = None if self._rules.tells_files_apart else _NO_FILE_IDS
        no_share, no_limits = self._uninvited, self._unlimited
        return (
            finding_reports.no_uninvited(no_share.confirmed.values(), no_share.more, self._index, problem),
            finding_reports.limits_enforced(
                no_limits.confirmed.values(), no_limits.more, self._index, problem or incomparable
            ),
        )

    async def _judge(self, seen: _Seen) -> bool:
        pods = tuple(self._known.pods())
        self.groups = tuple(unlimited.groups(seen.every, uninvited.by_kubelet_uid(pods)))
        judge = UseJudge(pods, self._known.held(), self._rules.allowed, self._known.is_group_server)
        without_share = dict(await asyncio.to_thread(judge.findings, seen.every))
        tolerance = self._rules.tolerance_bytes
        without_limits = dict(await asyncio.to_thread(unlimited.findings, seen.every, pods, seen.shares, tolerance))
        is_open = [self._take(self._uninvited, without_share), self._take(self._unlimited, without_limits)]
        return any([*is_open, self._take_outside(seen.clients)])

    def _take_outside(self, clients: Mapping[CardUuid, frozenset[int]]) -> bool:
        """Count what two looks have seen; whether this one has seen more."""
        before, self._outside_before = self._outside_before, space_clients.outside(self.groups, clients)
        self.outside_spaces = space_clients.counted(self.groups, before & self._outside_before)
        return bool(self._outside_before - before)

    def _take(self, sightings: Sightings, found: dict[Key, ProcessFinding]) -> bool:
        known = dict(sightings.confirmed)
        for card in self._silent or ():
            found |= sightings.last_of(card)
        is_open = sightings.take(found)
        _log_changes(known, sightings.confirmed)
        return is_open

    def _see(self, cards: list[CardUuid], allocations: Collection[Allocation], has_members: bool) -> _Seen:
        """Ask NVML and /proc, and read the regions; may block for the time that NVML has to answer."""
        listed, shares = share_files.read_around(allocations, self._files, lambda: self._driver.processes(cards))
        clients = self._driver.mps_clients(cards) if has_members else {}
        known = {pid: self._processes.process(pid) for pid in frozenset().union(*listed.values())}
        mapped = self._mapped(known, {kubelet_uid_of_scheduled(uid) for uid, _ in shares})
        uses = {
            card: [ListedProcess(card, pid, known[pid], used, mapped.get(pid)) for pid, used in pids.items()]
            for card, pids in listed.items()
        }
        return _Seen(uses, shares, clients)

    def _mapped(
        self, known: Mapping[int, HostProcess | None], pods: Collection[KubeletPodUid]
    ) -> Mapping[int, frozenset[FileId]]:
        """Read the mapped files of the processes of pods with shares."""
        if not self._rules.tells_files_apart:
            return {}
        of_shares = [pid for pid, process in known.items() if process and not _pods_of(process).isdisjoint(pods)]
        return self._processes.mapped(of_shares) if of_shares else {}

    def _index(self, gpu: CardUuid) -> str:
        return next((str(known.card.index) for known in self._known.gpus() if known.card.uuid == gpu), gpu)


def mountinfos(processes: Processes, own_pid: int) -> Callable[[], Mapping[int, str] | None]:
    """Return a function that reads the mounts of every process of the node; None where those are not seen. Blocks."""
    return lambda: None if _has_own_pids(processes, own_pid) else processes.mountinfos()


def _has_own_pids(processes: Processes, own_pid: int) -> bool:
    """Whether this process is in a pid namespace of its own pod, where it sees no other process of the node."""
    first = processes.process(1)
    return own_pid == 1 or (first is not None and bool(cgroup_path.owners_of(first.cgroups)))


def _pods_of(process: HostProcess) -> set[KubeletPodUid]:
    return {owner.pod for owner in cgroup_path.owners_of(process.cgroups)}


def _log_changes(before: Mapping[Key, ProcessFinding], after: Mapping[Key, ProcessFinding]) -> None:
    for key in after.keys() - before.keys():
        log.warning("card %s: %s: %s %s", after[key].gpu, after[key].kind, after[key].subject, after[key].detail)
    for key in before.keys() - after.keys():
        log.info("card %s: %s no more: %s", before[key].gpu, before[key].kind, before[key].subject)
