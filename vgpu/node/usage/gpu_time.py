"""GPU seconds of containers, of other processes and of the card, from regions and from NVML's samples. Pure.

The limiter counts a container's time in turns, by events on the card. A container that is alone on its card launches
without turns, and a process without the limiter has no region: for these NVML's samples count, which say how long each
process had a kernel running (docs/adr/0049).

A process without the limiter does not wait for turns: the card slices its time between that process and the container
that has the turn. A turn's time then contains the process's, which NVML counts as well. And NVML's samples of a process
are up to 1 % longer than the card's. While samples count for anybody, what was counted twice is taken off. A process
of which it is not known whether it belongs to a container takes nothing off: its time may be in turns (docs/adr/0132).

Members of a group in space work at the same moment, and NVML has samples of their MPS server only. A member's time is
its part of the server's: in proportion to the members' turns, equal parts where they launch without turns
(docs/adr/0174). The turns themselves do not count, because they overlap.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from types import MappingProxyType
from typing import Final, TypeVar

from vgpu.adapters.nvml.records import BusySamples
from vgpu.domain.identifiers import CardUuid, ContainerName, PodUid

_LONGEST_US: Final = 2_000_000  # a sample covers at most this: the card was not asked for a while
_US: Final = 1e-6
_SAMPLE_US: Final = 1_000_000  # a sample of NVML covers at most this
_SAMPLED_STAY_US: Final = 5_000_000  # processes known by samples count as present for this long after their last use
CREDIT_S: Final = 1.0  # busy time not yet accounted for: samples are up to a second later than turns
DEBT_S: Final = 0.5  # samples of processes may be ahead of the card's; 0.5 s is less than 1 % of a minute

Use = tuple[PodUid, ContainerName, CardUuid]  # pod UID, container, card
_OTHERS: Final = None  # stands for the processes without a container
_Key = TypeVar("_Key")


@dataclass(frozen=True, slots=True)
class GpuTimes:
    """GPU seconds on one card over one interval.

    Attributes:
        turns: of the containers that took turns.
        sampled: by NVML's samples, of the containers that took none; of the processes without a container under None.
        unknown: by NVML's samples, of processes of which it is not known whether they belong to a container.
    """

    turns: Mapping[Use, float]
    sampled: Mapping[Use | None, float]
    unknown: float = 0.0

    @property
    def total(self) -> float:
        """All seconds; more than the card was busy where time slices were counted twice."""
        return sum(self.turns.values()) + sum(self.sampled.values()) + self.unknown

    def without(self, excess_s: float) -> "GpuTimes":
        """Take off seconds that the card was not busy: of turns first, because only they are elapsed time.

        What the turns do not have is taken off all samples, the other processes' too, beyond a debt of `DEBT_S`.
        """
        rest = excess_s - sum(self.turns.values()) - DEBT_S
        return replace(self, turns=_reduced(self.turns, excess_s), sampled=_reduced(self.sampled, rest))


class Balance:
    """What a card was busy, less what was counted for containers and other processes. For one card.

    Turns are read up to a second before the card's samples of that time. What is too much in one interval may be
    missing in the next, so only a running difference tells what was counted twice. It is bounded, because errors of
    measurement add up, and is not kept while all use of the card is in turns.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self._sampled_at_us = -_SAMPLED_STAY_US

    def corrected(self, busy_s: float | None, times: GpuTimes, now_us: int) -> GpuTimes:
        """Return an interval's times without what was counted twice.

        They are unchanged where all use of the card is in turns, and beside processes of unknown owners. `busy_s` are
        the seconds in which the card was busy; None = the next interval's will contain them. `now_us` are microseconds
        since 1970.
        """
        if any(seconds > 0 for seconds in times.sampled.values()):
            self._sampled_at_us = now_us
        is_sampled = 0 <= now_us - self._sampled_at_us < _SAMPLED_STAY_US  # below 0: the clock was set back
        if times.unknown > 0 or not is_sampled:
            # The samples of processes that have just begun may be later than the card's: keep what they may explain.
            self.seconds = min(max((busy_s or 0.0) - times.total, 0.0), CREDIT_S)
            return times
        if busy_s is None:
            self.seconds = max(self.seconds - times.total, -CREDIT_S)
            return times
        left_s = self.seconds + busy_s
        kept = times.without(times.total - left_s)
        self.seconds = min(left_s - kept.total, CREDIT_S)
        return kept


class GpuTime:
    """Sums in seconds, since the plugin started. Counters only grow."""

    def __init__(self) -> None:
        self.card: dict[CardUuid, float] = {}
        self.others: dict[CardUuid, float] = {}
        self.containers: dict[Use, float] = {}
        self.sampled: dict[Use, float] = {}
        self._until: dict[CardUuid, int] = {}  # end of the card's last sample
        self._asked: dict[CardUuid, int] = {}  # end of the last sample of any process
        self._of_processes: dict[CardUuid, dict[int, int]] = {}
        self._turns: dict[Use, float] = {}
        self._read_at: dict[CardUuid, int] = {}
        self._weights: dict[Use, float] = {}  # turns of members that are not divided by yet
        self._balances: dict[CardUuid, Balance] = {}

    def since(self, gpus: Iterable[CardUuid]) -> dict[CardUuid, int]:
        """Return for each card from when samples are needed, in microseconds since 1970; 0 at first."""
        known = ((gpu, [end for end in (self._until.get(gpu), self._asked.get(gpu)) if end]) for gpu in gpus)
        return {gpu: min(ends, default=0) for gpu, ends in known}

    def add(
        self,
        samples: Mapping[CardUuid, BusySamples],
        owners: Mapping[tuple[CardUuid, int], Use | None],
        accounted: Mapping[Use, float],
        now_us: int,
        groups: Mapping[tuple[CardUuid, int], Collection[Use]] = MappingProxyType({}),
    ) -> None:
        """Take the samples since the last call, at `now_us` microseconds since 1970.

        Args:
            samples: of each card.
            owners: the container of each process of each card, None for one outside of the containers. Processes that
                are missing are unknown: they count as others, and nothing is taken off for them.
            accounted: the seconds in turns that each container's region says; a container without an entry has none.
            now_us: the time of the call.
            groups: the members of each group in space on its card, by the process that is its MPS server.
        """
        for gpu, sample in samples.items():
            self._forget_future(gpu, now_us)
            sampled_before = self._asked.get(gpu) or self._read_at.get(gpu, now_us)
            by_pid = self._by_pid(gpu, sample)
            busy: float | None = None
            if sample.card:
                busy = self._of_card(gpu, sample)
            elif not self._has_samples_of_card(gpu, now_us):
                busy = busy_by_processes(by_pid.values(), self._asked[gpu] - sampled_before)
            self.card[gpu] = self.card.get(gpu, 0.0) + (busy or 0.0)
            members = {pid: list(uses) for (card, pid), uses in groups.items() if card == gpu and uses}
            times = self._times(gpu, by_pid, owners, accounted, members)
            self._count(gpu, self._balances.setdefault(gpu, Balance()).corrected(busy, times, now_us))
            self._read_at[gpu] = now_us

    def forget(self, held: Collection[tuple[PodUid, str]]) -> None:
        """Forget containers that are gone: all but these, each a pod's UID and a name."""
        for sums in (self.containers, self.sampled, self._turns, self._weights):
            for use in [total for total in sums if total[:2] not in held]:
                del sums[use]

    def _forget_future(self, gpu: CardUuid, now_us: int) -> None:
        """Forget times that are later than now: the wall clock was ahead, and no sample would count until it is."""
        for known in (self._until, self._asked, self._read_at):
            if known.get(gpu, 0) > now_us + _LONGEST_US:
                del known[gpu]
                self._of_processes.pop(gpu, None)

    def _has_samples_of_card(self, gpu: CardUuid, now_us: int) -> bool:
        """Whether the card has had samples of its own lately: the next ones will contain the time since."""
        return abs(now_us - self._until.get(gpu, 0)) < _LONGEST_US

    def _of_card(self, gpu: CardUuid, samples: BusySamples) -> float:
        """Sum the card's own samples."""
        total, before = 0.0, self._until.get(gpu, 0)
        for ended, share in sorted(samples.card):
            if before:
                total += share * min(max(0, ended - before), _LONGEST_US) * _US
            before = max(before, ended)
        self._until[gpu] = before
        return total

    def _by_pid(self, gpu: CardUuid, samples: BusySamples) -> dict[int, float]:
        """Sum each process's samples. A process's first one begins after the last call, a second before its end."""
        ends, sums, last_call = self._of_processes.setdefault(gpu, {}), dict[int, float](), self._read_at.get(gpu)
        for pid, ended, share in sorted(samples.processes, key=lambda sample: sample[1]):
            first = ended if last_call is None else max(last_call, ended - _SAMPLE_US)
            period = min(max(0, ended - ends.get(pid, first)), _LONGEST_US)
            sums[pid] = sums.get(pid, 0.0) + share * period * _US
            ends[pid] = max(ended, ends.get(pid, 0))
        newest = max(ends.values(), default=0)
        self._asked[gpu] = max(self._asked.get(gpu, 0), newest)
        self._of_processes[gpu] = {pid: end for pid, end in ends.items() if newest - end < 10 * _LONGEST_US}
        return sums

    def _times(
        self,
        gpu: CardUuid,
        by_pid: Mapping[int, float],
        owners: Mapping[tuple[CardUuid, int], Use | None],
        accounted: Mapping[Use, float],
        groups: Mapping[int, Collection[Use]],
    ) -> GpuTimes:
        """Return the card's times since the last call: of turns, and of samples where a container had no turn."""
        sampled: dict[Use | None, float] = {use: 0.0 for use in accounted if use[2] == gpu}
        unknown = 0.0
        for pid, seconds in by_pid.items():
            if pid in groups:
                continue
            if (gpu, pid) in owners:
                use = owners[gpu, pid]
                sampled[use] = sampled.get(use, 0.0) + seconds
            else:
                unknown += seconds
        turns: dict[Use, float] = {}
        for use, seconds in sampled.items():
            if use is not _OTHERS:
                self.sampled[use] = self.sampled.get(use, 0.0) + seconds
                turns[use] = self._new_turns(use, accounted.get(use, 0.0))
        of_members: dict[Use, float] = {}
        for pid, members in groups.items():
            of_members |= self._parts(by_pid.get(pid, 0.0), {member: turns.pop(member, 0.0) for member in members})
        for member, seconds in of_members.items():
            self.sampled[member] = self.sampled.get(member, 0.0) + seconds
            sampled[member] = sampled.get(member, 0.0) + seconds
        had_turns = {use: seconds for use, seconds in turns.items() if seconds}
        return GpuTimes(
            had_turns, {use: sampled_s for use, sampled_s in sampled.items() if use not in had_turns}, unknown
        )

    def _parts(self, seconds: float, turns: Mapping[Use, float]) -> dict[Use, float]:
        """Divide a server's samples among the members, by their turns since it last had samples, which come later."""
        for member, turns_s in turns.items():
            self._weights[member] = self._weights.get(member, 0.0) + turns_s
        if seconds <= 0:
            return dict.fromkeys(turns, 0.0)
        weights = {member: self._weights.pop(member) for member in turns}
        total = sum(weights.values())
        return {
            member: seconds * (weight / total if total > 0 else 1 / len(weights)) for member, weight in weights.items()
        }

    def _new_turns(self, use: Use, now_s: float) -> float:
        """Return the seconds in turns since the last call; `now_s` is what the region says."""
        before, self._turns[use] = self._turns.get(use, now_s), now_s
        return max(0.0, now_s - before)

    def _count(self, gpu: CardUuid, times: GpuTimes) -> None:
        unknown = [(_OTHERS, times.unknown)] if times.unknown else []
        for use, seconds in chain(times.turns.items(), times.sampled.items(), unknown):
            if use is _OTHERS:
                self.others[gpu] = self.others.get(gpu, 0.0) + seconds
            else:
                self.containers[use] = self.containers.get(use, 0.0) + seconds


def busy_by_processes(seconds: Iterable[float], covered_us: int) -> float:
    """Return the seconds that a card without samples of its own was busy, from the seconds of its processes.

    Two processes in one time slice both count, so it is at most the time which the samples cover. That is not the time
    between two calls: samples come late, and after a call without any the next one has those of two.
    """
    return min(sum(seconds), min(max(0, covered_us), _LONGEST_US) * _US)


def _reduced(seconds: Mapping[_Key, float], excess_s: float) -> Mapping[_Key, float]:
    """Return seconds with `excess_s` taken off in proportion, down to 0; unchanged without an excess."""
    total = sum(seconds.values())
    kept = 1 - min(max(excess_s / total, 0.0), 1.0) if total > 0 else 1.0
    return {key: second * kept for key, second in seconds.items()}
