"""For how long each container has used none of its cards, by its own kernels. Pure: the time is an argument.

Evidence of use: the container's GPU seconds have grown, its region shows a launch, or NVML has a sample of one of its
processes, with any engine busy: video decoding is use too. CPU time, memory and the utilization of the whole card are
none, and neither are the kernels of a synthetic load. A time that cannot be known is not idle time: it begins again at
zero

- when the plugin starts, or has not looked for `MAX_GAP_NS`: NVML keeps samples of about 20 s;
- when the card answers again, its driver names processes again, or the region can be read again.

NVML names processes by pid, and /proc says which container a process belongs to. A process that has ended before it was
asked for counts for the containers of its card whose launches may not pass the launch gate: the only container of a
card, and one whose region has never shown a launch.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from vgpu.adapters.nvml.records import BusySamples
from vgpu.domain.formats.region import CardUse
from vgpu.domain.identifiers import CardUuid
from vgpu.node.usage.gpu_time import Use

MAX_GAP_NS: Final = 15_000_000_000
UNCLASSIFIED_NS: Final = 60_000_000_000  # after it a process that belongs to no container counts for none
_REMEMBERED_US: Final = 60_000_000
_NS_PER_MS: Final = 1_000_000

Process = tuple[CardUuid, int]  # card, pid


@dataclass(frozen=True, slots=True)
class Evidence:
    """What one look has seen of a container on a card.

    Attributes:
        gpu_s: GPU seconds since the container or the plugin started; None where they cannot be known.
        launched_ns: when the region last shows a launch or its end; CLOCK_MONOTONIC, 0 for never.
        is_active: whether NVML has a sample of a process of the container since the last look.
    """

    gpu_s: float | None
    launched_ns: int = 0
    is_active: bool = False

    def without_use(self) -> "Evidence":
        """Return what remains of it for a synthetic load: whether its idle time can be known."""
        return Evidence(None if self.gpu_s is None else 0.0)


@dataclass(frozen=True, slots=True)
class _LastUseRecord:
    gpu_s: float
    since_ns: int


class LastUse:
    """When each container last used each of its cards. Times are CLOCK_MONOTONIC in ns."""

    def __init__(self) -> None:
        self._records: dict[Use, _LastUseRecord] = {}
        self._looked_ns: int | None = None

    def look(self, seen: Mapping[Use, Evidence], now_ns: int) -> None:
        """Take what was seen of every container; containers that are left out are forgotten."""
        is_gap = self._looked_ns is None or not 0 <= now_ns - self._looked_ns <= MAX_GAP_NS
        before = {} if is_gap else self._records
        self._records = {
            use: _LastUseRecord(evidence.gpu_s, _since(before.get(use), evidence, now_ns))
            for use, evidence in seen.items()
            if evidence.gpu_s is not None
        }
        self._looked_ns = now_ns

    def idle_ms(self) -> dict[Use, int]:
        """Return how long each container was idle at the last look; containers of which that is unknown are missing."""
        now_ns = self._looked_ns or 0
        return {use: (now_ns - record.since_ns) // _NS_PER_MS for use, record in self._records.items()}


def _since(before: _LastUseRecord | None, seen: Evidence, now_ns: int) -> int:
    if before is None or seen.is_active or seen.gpu_s != before.gpu_s:
        return now_ns
    return max(before.since_ns, min(seen.launched_ns, now_ns))


class ActiveProcesses:
    """Which processes NVML has new samples of, and which of these belong to no known container."""

    def __init__(self) -> None:
        self._ends_us: dict[Process, int] = {}
        self._first_ns: dict[Process, int] = {}

    def take(self, samples: Mapping[CardUuid, BusySamples]) -> frozenset[Process]:
        """Return the processes with a sample that is later than their last one: drivers may return one twice."""
        ends = {(gpu, pid): end for gpu, sample in samples.items() for pid, end in sample.active.items()}
        found = frozenset(process for process, end in ends.items() if end > self._ends_us.get(process, 0))
        newest = max(ends.values(), default=0)
        kept = {process: end for process, end in self._ends_us.items() if newest - end < _REMEMBERED_US}
        self._ends_us = kept | ends
        return found

    def young_on(self, active: Collection[Process], owned: Collection[Process], now_ns: int) -> frozenset[CardUuid]:
        """Return the cards on which a process of no container was first seen less than `UNCLASSIFIED_NS` ago."""
        strangers, known = set(active) - set(owned), self._first_ns
        recent = {
            process: first
            for process, first in known.items()
            if process in strangers or now_ns - first < UNCLASSIFIED_NS
        }
        self._first_ns = dict.fromkeys(strangers, now_ns) | recent
        return frozenset(gpu for gpu, pid in strangers if now_ns - self._first_ns[gpu, pid] < UNCLASSIFIED_NS)


def evidence(
    accounts: Mapping[Use, CardUse | None],
    seconds: Mapping[Use, float],
    samples: Mapping[CardUuid, BusySamples],
    used: Collection[Use],
    young_on: Collection[CardUuid],
) -> dict[Use, Evidence]:
    """Return what one look has seen.

    Args:
        accounts: the containers on their cards, with the region's account, None before the first use. A container whose
            region cannot be read is left out.
        seconds: GPU seconds of containers; a container without an entry has used none.
        samples: NVML's, since the last look.
        used: containers with an active process.
        young_on: cards with processes of which the container is not known yet.
    """
    tenants = Counter(gpu for _, _, gpu in accounts)
    found: dict[Use, Evidence] = {}
    for use, account in accounts.items():
        gpu = use[2]
        is_known = gpu in samples and samples[gpu].names_processes
        launched = _launched_ns(account)
        is_suspect = gpu in young_on and (tenants[gpu] == 1 or not launched)
        found[use] = Evidence(seconds.get(use, 0.0) if is_known else None, launched, use in used or is_suspect)
    return found


def _launched_ns(account: CardUse | None) -> int:
    """Return the time of the last launch, or of the end of its work where that is later, which may be in the future."""
    if account is None:
        return 0
    activity = account.activity
    return max(activity.last_launch_at_ns, activity.last_kernel_end_at_ns, account.busy_until_ns)
