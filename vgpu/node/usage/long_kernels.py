"""Which containers keep the others of their card waiting by long kernels, or by one that does not end. Pure.

Long: in the last minute the container has run kernels of 50 ms or more, by its region, and another container has
launched on the card meanwhile.

Endless: for `ENDLESS_NS` NVML has seen kernels of the container again and again, and no turn of the container has
ended, although another one has launched. The work of a turn has drained when it ends. Launches say nothing: those that
a kernel may be waiting for go early, for as long as it does not end (ADR 170). A container that is alone on its card
launches past the launch gate, so its region shows launches and turns only beside others.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from vgpu.adapters.nvml.records import BusySamples
from vgpu.domain.formats.region import CardUse
from vgpu.domain.identifiers import CardUuid
from vgpu.node.usage.gpu_time import Use

ENDLESS_NS: Final = 6_000_000_000  # twice what the arbiter lets a kernel take; a report is due within 10 s
PERIOD_NS: Final = 60_000_000_000  # over which long kernels are counted
LEAST_LONG: Final = 2  # in a period: one may be the loading of a program
_SAMPLE_GAP_NS: Final = 3_000_000_000  # between two samples of a busy process that are one period
_NEIGHBOUR_NS: Final = 5_000_000_000  # how lately another container must have launched


@dataclass(frozen=True, slots=True)
class LongKernels:
    """The long kernels of a container on a card in the last period.

    Attributes:
        count: of kernels.
        seconds: that they took together.
    """

    count: int
    seconds: float


@dataclass(frozen=True, slots=True)
class _Counted:
    at_ns: int
    count: int
    took_ns: int


@dataclass(frozen=True, slots=True)
class _Busy:
    since_ns: int
    last_ns: int


class KernelLengths:
    """What is found of the containers of a node. Call `look` every second. Times are CLOCK_MONOTONIC in ns.

    `long` and `endless_s` are by container and card: the long kernels, and for how long a kernel has run that does not
    end.
    """

    def __init__(self) -> None:
        self.long: Mapping[Use, LongKernels] = {}
        self.endless_s: Mapping[Use, float] = {}
        self._counted: dict[Use, _Counted] = {}
        self._busy: dict[Use, _Busy] = {}

    def look(
        self,
        held: Mapping[Use, CardUse | None],
        samples: Mapping[CardUuid, BusySamples],
        owners: Mapping[tuple[CardUuid, int], Use | None],
        now_ns: int,
    ) -> None:
        """Take what one look has seen; containers that are left out are forgotten.

        Args:
            held: the containers on their cards, with the region's account, None before the first use.
            samples: NVML's since the last look; cards that do not answer are left out.
            owners: the containers of processes, by card and pid; None for one without.
            now_ns: the time.
        """
        launched = {use: account.activity.last_launch_at_ns for use, account in held.items() if account}
        ended = {use: _last_end_ns(account) for use, account in held.items() if account}
        self.long = self._long(held, launched, now_ns)
        self._note_busy({owner for process in _busy(samples) if (owner := owners.get(process)) is not None}, now_ns)
        ran_ns = {
            use: now_ns - max(busy.since_ns, ended[use])
            for use, busy in self._busy.items()
            if launched.get(use) and _has_neighbour(use, launched, now_ns - _NEIGHBOUR_NS)
        }
        self.endless_s = {use: ns / 1e9 for use, ns in ran_ns.items() if ns >= ENDLESS_NS}

    def _note_busy(self, busy: Collection[Use], now_ns: int) -> None:
        """Note the containers of which a kernel ran; NVML has no sample of each process in each look."""
        recent = {use: seen for use, seen in self._busy.items() if now_ns - seen.last_ns <= _SAMPLE_GAP_NS}
        self._busy = recent | {use: _Busy(recent[use].since_ns if use in recent else now_ns, now_ns) for use in busy}

    def _long(
        self, held: Mapping[Use, CardUse | None], launched: Mapping[Use, int], now_ns: int
    ) -> dict[Use, LongKernels]:
        """Compare the counters with those of the last period; until that is over, what it has found counts."""
        found: dict[Use, LongKernels] = {}
        before, self._counted = self._counted, {}
        for use, account in held.items():
            if account is None:
                continue
            now = _Counted(now_ns, account.activity.long_kernels, account.activity.long_kernel_ns)
            last = before.get(use, now)
            is_over = now_ns - last.at_ns >= PERIOD_NS or last.count > now.count
            self._counted[use] = now if is_over else last
            count = now.count - last.count
            if count >= LEAST_LONG and _has_neighbour(use, launched, last.at_ns):
                found[use] = LongKernels(count, (now.took_ns - last.took_ns) / 1e9)
            elif not is_over and use in self.long:
                found[use] = self.long[use]
        return found


def _last_end_ns(account: CardUse) -> int:
    """Return when a turn last ended; of a container that had none, when it last launched."""
    return account.activity.last_kernel_end_at_ns or account.activity.last_launch_at_ns


def _busy(samples: Mapping[CardUuid, BusySamples]) -> Collection[tuple[CardUuid, int]]:
    """Return the processes of which a kernel ran."""
    return {(gpu, pid) for gpu, sample in samples.items() for pid, _, share in sample.processes if share > 0}


def _has_neighbour(use: Use, launched: Mapping[Use, int], since_ns: int) -> bool:
    """Whether another container has launched on the card since then."""
    return any(at >= since_ns > 0 for other, at in launched.items() if other != use and other[2] == use[2])
