"""`vgpu diagnose --live`: watches running programs of this machine, and says what keeps them from their cards.

The regions say what launches wait for, NVML what the programs' kernels and the cards do, /proc what the programs do on
the host. Where one of them does not answer, the others must do.
"""

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from limiter.host import Host
from vgpu.adapters import process_use
from vgpu.adapters.nvml.activity import CardActivity, Watch
from vgpu.adapters.nvml.session import Nvml
from vgpu.cli.failure import NOT_FOUND, CommandFailed
from vgpu.cli.local import allocations
from vgpu.cli.local.allocations import MachineAllocation
from vgpu.domain.errors import MalformedError, NvmlError
from vgpu.domain.formats import region
from vgpu.domain.formats.region import CardUse
from vgpu.domain.identifiers import CardUuid
from vgpu.workloads.diagnose import live, period, sharing
from vgpu.workloads.diagnose.finding import ProgramDiagnosis
from vgpu.workloads.diagnose.period import CardSeen, HostSeen, Period

SAMPLE_S: Final = 0.25
NOT_MEASURED: Final = (
    "NVML does not answer, and the limiter counts only a program that has a share of the time, or is not alone on its "
    "card; this one is neither"
)
_NS: Final = 1e9

Key = tuple[Path, CardUuid]  # folder, card
Busy = dict[CardUuid, dict[int, float]]  # seconds in which a kernel ran, by card and pid


@dataclass(frozen=True, slots=True)
class _Look:
    """What was read at one time."""

    cards: Mapping[Key, tuple[MachineAllocation, CardUse]]
    hosts: Mapping[Path, Mapping[int, process_use.HostUse]]


class _Driver:
    """NVML while programs are watched; says nothing where there is none."""

    def __init__(self, gpus: Collection[CardUuid], stack: ExitStack) -> None:
        self._since_us = dict.fromkeys(gpus, 0)
        self.busy: Busy = {}
        self._watches: dict[CardUuid, Watch] = {}
        try:
            self._nvml: Nvml | None = stack.enter_context(Nvml())
        except NvmlError:
            self._nvml = None
            return
        self._watches = {gpu: stack.enter_context(Watch(gpu)) for gpu in gpus}
        self._add_samples()
        self.busy = {}

    def sample(self, *, with_processes: bool) -> None:
        for watch in self._watches.values():
            watch.sample()
        if with_processes:
            self._add_samples()

    def activity(self, gpu: CardUuid) -> CardActivity | None:
        """Return what a card has done; None where the driver does not name processes, so that nothing is anyone's."""
        watch = self._watches.get(gpu)
        return watch.activity() if watch and gpu in self.busy else None

    def _add_samples(self) -> None:
        """Add what each process has used. NVML's last sample of a process holds until the next look."""
        for gpu, samples in self._nvml.busy_samples(self._since_us).items() if self._nvml else ():
            if samples.names_processes:
                known = self.busy.setdefault(gpu, {})
                newest = {pid: share for pid, _, share in sorted(samples.processes, key=lambda sample: sample[1])}
                for pid, share in newest.items():
                    known[pid] = known.get(pid, 0.0) + share
            ends = [end for _, end, _ in samples.processes]
            self._since_us[gpu] = max([self._since_us[gpu], *ends])


def diagnose(directories: Sequence[Path], name: str, seconds: float, host: Host) -> list[ProgramDiagnosis]:
    """Diagnose the allocations whose ID begins with `name`, or whose command or pod contains `name`.

    `seconds` is the time for which they are watched. Returns each allocation on each card, by name.

    Raises CommandFailed where there is none, or nothing is measured.
    """
    with ExitStack() as stack:
        before, begun_ns = _look(directories, name), host.monotonic_ns()
        if not before.cards:
            is_known = any(_named(directories, name))
            why = "has used no card so far" if is_known else "is no allocation's ID, command or pod; see vgpu top"
            raise CommandFailed(f"--live: {name[:80]}: {why}", NOT_FOUND)
        driver = _Driver({gpu for _, gpu in before.cards}, stack)
        looks = _watch(driver, seconds, host)
        after, ns = _look(directories, name), host.monotonic_ns() - begun_ns
        seen = {
            f"{after.cards[key][0].name} on {key[1]}": watched
            for key, watched in _periods(before, after, ns, driver, looks)
            if watched.is_known
        }
    found = _diagnoses(seen)
    if not found:
        raise CommandFailed(f"--live: {name[:80]}: {NOT_MEASURED}", NOT_FOUND)
    return found


def _diagnoses(seen: Mapping[str, Period]) -> list[ProgramDiagnosis]:
    """Diagnose programs, by name, and say which of them fit together on a card."""
    findings = {name: list(live.check(watched)) for name, watched in seen.items()}
    codes = {name: frozenset(finding.code for finding in found) for name, found in findings.items()}
    fit = sharing.together(
        {name: watched.used for name, watched in seen.items() if sharing.may_share(watched, codes[name])}
    )
    return [
        ProgramDiagnosis(name, found, sharing.advice(seen[name], codes[name], fit.get(name, ())))
        for name, found in findings.items()
    ]


def _watch(driver: _Driver, seconds: float, host: Host) -> int:
    """Take samples; return how often processes were asked for, which is once a second."""
    end_ns, next_ns, looks = host.monotonic_ns() + int(seconds * _NS), host.monotonic_ns() + int(_NS), 0
    while (now_ns := host.monotonic_ns()) < end_ns:
        is_due = now_ns >= next_ns
        driver.sample(with_processes=is_due)
        looks, next_ns = (looks + 1, next_ns + int(_NS)) if is_due else (looks, next_ns)
        host.sleep(min(SAMPLE_S, (end_ns - now_ns) / _NS))
    driver.sample(with_processes=True)
    return looks + 1


def _periods(before: _Look, after: _Look, ns: int, driver: _Driver, looks: int) -> Iterator[tuple[Key, Period]]:
    for key, (allocation, card) in after.cards.items():
        if key not in before.cards:
            continue
        seen = period.between(before.cards[key][1], card, ns, _cores(allocation, card))
        if seen is not None:
            old, new = before.hosts.get(key[0], {}), after.hosts.get(key[0], {})
            pids = old.keys() | new.keys()
            yield key, replace(seen, card=_card_seen(key[1], pids, driver, looks), host=_host_seen(old, new, ns))


def _card_seen(gpu: CardUuid, pids: Collection[int], driver: _Driver, looks: int) -> CardSeen | None:
    found = driver.activity(gpu)
    if found is None or not pids:
        return None
    shares = driver.busy[gpu]
    busy = min(1.0, sum(share for pid, share in shares.items() if pid in pids) / looks)
    if shares.keys() - pids:
        return CardSeen(busy)
    kernels = busy if found.kernels is None else found.kernels
    return CardSeen(kernels, found.multiprocessors, found.copied_per_s, found.clock, found.power, found.heat)


def _host_seen(
    old: Mapping[int, process_use.HostUse], new: Mapping[int, process_use.HostUse], ns: int
) -> HostSeen | None:
    if not old or not new:
        return None
    used, seconds = process_use.between(old, new), ns / _NS
    available = len(os.sched_getaffinity(0))
    return HostSeen(
        used.cpu_ns / ns,
        available,
        used.read_bytes / seconds,
        used.written_bytes / seconds,
        used.storage_bytes / seconds,
        used.threads,
    )


def _named(directories: Sequence[Path], name: str) -> Iterator[MachineAllocation]:
    """Yield the allocations whose ID begins with `name`, or whose command or pod contains it."""
    for directory in directories:
        for allocation in allocations.read_all(directory):
            if allocation.folder.name.startswith(name) or name in allocation.name:
                yield allocation


def _look(directories: Sequence[Path], name: str) -> _Look:
    cards = {
        (allocation.folder, card.gpu): (allocation, card)
        for allocation in _named(directories, name)
        for card in allocation.cards or ()
    }
    return _Look(cards, {folder: _host_use(folder) for folder, _ in cards})


def _host_use(folder: Path) -> dict[int, process_use.HostUse]:
    """Return what the processes of an allocation use, and their descendants, which may load data for them."""
    try:
        processes = region.decode(allocations.read_region(folder)).processes
    except (OSError, MalformedError):
        return {}
    return process_use.of_trees(process_use.pids_here({(process.pid, process.pid_namespace) for process in processes}))


def _cores(allocation: MachineAllocation, card: CardUse) -> int:
    granted = allocation.limits.cards if allocation.limits else ()
    return next((grant.cores for grant in granted if grant.gpu == card.gpu), granted[0].cores if granted else 0)
