"""GPU seconds of containers, of other processes and of the card, from regions and from NVML's samples. Pure.

The limiter counts a container's time in turns, by events on the card. A container that is alone on its card launches
without turns, and a process without the limiter has no region: for these NVML's samples count, which say how long each
process had a kernel running (docs/adr/0049).
"""

from collections.abc import Iterable, Mapping
from typing import Final

from vgpu.adapters.nvml.records import BusySamples

_LONGEST_US: Final = 2_000_000  # a sample covers at most this: the card was not asked for a while
_US: Final = 1e-6
_SAMPLE_US: Final = 1_000_000  # a sample of NVML covers at most this

Use = tuple[str, str, str]  # pod UID, container, card


class GpuTime:
    """Sums in seconds, since the plugin started. Counters only grow."""

    def __init__(self) -> None:
        self.card: dict[str, float] = {}
        self.others: dict[str, float] = {}
        self.containers: dict[Use, float] = {}
        self.sampled: dict[Use, float] = {}
        self._until: dict[str, int] = {}  # end of the card's last sample
        self._asked: dict[str, int] = {}  # end of the last sample of any process
        self._of_processes: dict[str, dict[int, int]] = {}
        self._turns: dict[Use, float] = {}
        self._read_at: dict[str, int] = {}

    def since(self, gpus: Iterable[str]) -> dict[str, int]:
        """Return for each card from when samples are needed, in microseconds since 1970; 0 at first."""
        known = ((gpu, [each for each in (self._until.get(gpu), self._asked.get(gpu)) if each]) for gpu in gpus)
        return {gpu: min(ends, default=0) for gpu, ends in known}

    def add(
        self,
        samples: Mapping[str, BusySamples],
        owners: Mapping[tuple[str, int], Use],
        accounted: Mapping[Use, float],
        now_us: int,
    ) -> None:
        """Take the samples since the last call, at `now_us` microseconds since 1970.

        `owners` is the container of each process of each card. `accounted` are the seconds in turns that each
        container's region says; a container without an entry has no region.
        """
        for gpu, each in samples.items():
            by_pid = self._by_pid(gpu, each)
            elapsed = (now_us - self._read_at.get(gpu, now_us)) * _US
            busy = self._of_card(gpu, each) if each.card else min(elapsed, sum(by_pid.values()))
            self.card[gpu] = self.card.get(gpu, 0.0) + busy
            self._share_out(gpu, by_pid, owners, accounted)
            self._read_at[gpu] = now_us

    def forget(self, uses: Iterable[Use]) -> None:
        """Forget containers that are gone: all but these."""
        kept = set(uses)
        for sums in (self.containers, self.sampled, self._turns):
            for use in sums.keys() - kept:
                del sums[use]

    def _of_card(self, gpu: str, samples: BusySamples) -> float:
        """Sum the card's own samples; drivers without them leave the sum of the processes' samples."""
        total, before = 0.0, self._until.get(gpu, 0)
        for ended, share in sorted(samples.card):
            if before:
                total += share * min(max(0, ended - before), _LONGEST_US) * _US
            before = max(before, ended)
        self._until[gpu] = before
        return total

    def _by_pid(self, gpu: str, samples: BusySamples) -> dict[int, float]:
        """Sum each process's samples. A process's first one begins after the last call, a second before its end."""
        ends, sums, last_call = self._of_processes.setdefault(gpu, {}), dict[int, float](), self._read_at.get(gpu)
        for pid, ended, share in sorted(samples.processes, key=lambda each: each[1]):
            first = ended if last_call is None else max(last_call, ended - _SAMPLE_US)
            period = min(max(0, ended - ends.get(pid, first)), _LONGEST_US)
            sums[pid] = sums.get(pid, 0.0) + share * period * _US
            ends[pid] = max(ended, ends.get(pid, 0))
        newest = max(ends.values(), default=0)
        self._asked[gpu] = max(self._asked.get(gpu, 0), newest)
        self._of_processes[gpu] = {pid: end for pid, end in ends.items() if newest - end < 10 * _LONGEST_US}
        return sums

    def _share_out(
        self,
        gpu: str,
        by_pid: Mapping[int, float],
        owners: Mapping[tuple[str, int], Use],
        accounted: Mapping[Use, float],
    ) -> None:
        sampled: dict[Use, float] = {use: 0.0 for use in accounted if use[2] == gpu}
        for pid, seconds in by_pid.items():
            use = owners.get((gpu, pid))
            if use is None:
                self.others[gpu] = self.others.get(gpu, 0.0) + seconds
            else:
                sampled[use] = sampled.get(use, 0.0) + seconds
        for use, seconds in sampled.items():
            now = accounted.get(use, 0.0)
            turns = max(0.0, now - self._turns.get(use, now))
            self._turns[use] = now
            self.sampled[use] = self.sampled.get(use, 0.0) + seconds
            self.containers[use] = self.containers.get(use, 0.0) + used(turns, seconds)


def used(turns_s: float, sampled_s: float) -> float:
    """Return the GPU time of a container over one interval: that of its turns, or of the samples where it had none."""
    return turns_s or sampled_s
