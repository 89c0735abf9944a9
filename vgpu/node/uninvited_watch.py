"""Looks every few seconds for processes that use a card without a share of it, and reports them.

Each look asks NVML once for the processes of each card, and /proc for each process. A change is confirmed by another
look a second later, so that a report takes the period and a second. Cards divided by MIG are not looked at: vgpushare
gives none of them out. A card that does not answer keeps its findings.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final, Protocol

from vgpu import names
from vgpu.adapters.nvml import Gpu
from vgpu.adapters.procfs import Process
from vgpu.node import cgroup_path
from vgpu.node.gpunode_status import Condition
from vgpu.node.pods import BoundPod
from vgpu.node.sightings import Sightings
from vgpu.node.uninvited import Finding, Held, Judge, Key, Use

NO_UNINVITED: Final = "NoUninvitedProcesses"
CONFIRM_S: Final = 1.0
_MAX_MESSAGE: Final = 900
_ADVICE: Final = (
    f"Ask for {names.GPU_MEM} or {names.GPU}; set NVIDIA_VISIBLE_DEVICES neither in the manifest nor in a ConfigMap or "
    "the image, and mount no device files"
)

log = logging.getLogger(__name__)


class Driver(Protocol):
    """What is asked of NVML."""

    def processes(self, gpus: Iterable[str]) -> dict[str, frozenset[int]]:
        """Return the pids of each card's processes; cards that do not answer are left out."""


class Processes(Protocol):
    """What is asked of /proc."""

    def process(self, pid: int) -> Process | None:
        """Return a process, None where there is none."""


class UninvitedWatch:
    """The findings of one node. `on_change` may be set: it is called when they change."""

    def __init__(
        self,
        driver: Driver,
        processes: Processes,
        *,
        gpus: Callable[[], Collection[Gpu]],
        pods: Callable[[], Iterable[BoundPod]],
        held: Callable[[], Collection[Held]],
        allowed: Collection[str],
        own_pid: int,
        period_s: float,
        evicts: bool,
    ) -> None:
        """`allowed`: commands of host processes; `evicts`: whether to ask for evictions of pods with a controller."""
        self.on_change: Callable[[], None] = lambda: None
        self._driver = driver
        self._processes = processes
        self._gpus = gpus
        self._pods = pods
        self._held = held
        self._allowed = allowed
        self._own_pid = own_pid
        self._period_s = period_s
        self._evicts = evicts
        self._sightings = Sightings()
        self._silent: tuple[str, ...] | None = None
        self._is_blind = False

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            is_open = await self.look()
            await asyncio.sleep(min(CONFIRM_S, self._period_s) if is_open else self._period_s)

    async def look(self) -> bool:
        """Look once; return whether another look soon would change something."""
        cards = [gpu.card.uuid for gpu in self._gpus() if not gpu.mig_enabled]
        before = (self.reports(), self.condition())
        self._is_blind = self._has_own_pids()
        answers = {} if self._is_blind else await asyncio.to_thread(self._uses, cards)
        self._silent = tuple(card for card in cards if card not in answers)
        known, judge = self._sightings.confirmed, Judge(self._pods(), self._held(), self._allowed)
        seen = dict(await asyncio.to_thread(judge.findings, [use for uses in answers.values() for use in uses]))
        for card in self._silent:
            seen |= self._sightings.last_of(card)
        is_open = self._sightings.take(seen)
        _log_changes(known, self._sightings.confirmed)
        if (self.reports(), self.condition()) != before:
            self.on_change()
        return is_open

    def reports(self) -> list[dict[str, Any]]:
        """Return an entry for each pod that the API has, as `status.refusals` of a GPUNode lists them."""
        by_pod: dict[str, list[Finding]] = {}
        for each in self._sightings.confirmed.values():
            if each.pod is not None:
                by_pod.setdefault(each.pod.uid, []).append(each)
        return [self._report(pod, found) for found in by_pod.values() if (pod := found[0].pod)]

    def condition(self) -> Condition:
        """Return the condition of the GPUNode."""
        found = self._sightings.confirmed.values()
        if self._is_blind:
            message = "the device plugin sees no processes of the host: set hostPID: true in its DaemonSet"
            return Condition(NO_UNINVITED, None, "NoHostPID", message)
        if found:
            texts = [f"card {self._index(each.gpu)}: {each.subject}" for each in found]
            more = [f"and {self._sightings.more} more"] if self._sightings.more else []
            return Condition(NO_UNINVITED, False, names.CARD_USED_WITHOUT_SHARE, "; ".join([*texts, *more]))
        if self._silent is None or self._silent:
            return Condition(NO_UNINVITED, None, "NotKnown", "NVML has not named the processes of every card")
        return Condition(NO_UNINVITED, True, "NoneFound", "every process on a card belongs to a share of it")

    def _uses(self, cards: list[str]) -> dict[str, list[Use]]:
        """Ask NVML and /proc; may block for the time that NVML has to answer."""
        listed = self._driver.processes(cards)
        known = {pid: self._processes.process(pid) for pid in frozenset().union(*listed.values())}
        return {card: [Use(card, pid, known[pid]) for pid in pids] for card, pids in listed.items()}

    def _has_own_pids(self) -> bool:
        """Whether this process is in a pid namespace of its own pod, where NVML names no other process."""
        first = self._processes.process(1)
        return self._own_pid == 1 or (first is not None and bool(cgroup_path.owners_of(first.cgroups)))

    def _report(self, pod: BoundPod, found: list[Finding]) -> dict[str, Any]:
        texts = "; ".join(
            f"card {self._index(each.gpu)} ({each.gpu}) is used by {each.subject} without a share of it"
            for each in found
        )
        return {
            "podUID": pod.uid,
            "pod": f"{pod.namespace}/{pod.name}",
            "reason": names.CARD_USED_WITHOUT_SHARE,
            "message": f"{texts[: _MAX_MESSAGE - len(_ADVICE)]}. {_ADVICE}",
            "evict": self._evicts and pod.has_controller,
        }

    def _index(self, gpu: str) -> str:
        return next((str(each.card.index) for each in self._gpus() if each.card.uuid == gpu), gpu)


def _log_changes(before: Mapping[Key, Finding], after: Mapping[Key, Finding]) -> None:
    for key in after.keys() - before.keys():
        log.warning("card %s is used without a share by %s", after[key].gpu, after[key].subject)
    for key in before.keys() - after.keys():
        log.info("card %s is no longer used without a share by %s", before[key].gpu, before[key].subject)
