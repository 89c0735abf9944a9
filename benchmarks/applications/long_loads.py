"""Long kernels beside short ones: kernels of 0.1, 0.7 and 3 s, kernels that spin, and a kernel that never ends."""

import functools
import itertools
import signal
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from benchmarks.compute.load import WARM_NS, Feeder, FeederLoad, TimedLoad, loops_per_ms, run_together
from benchmarks.compute.node import Env, LaunchPlace, cards_of
from benchmarks.compute.scenario import SHOWN, Figures, Scenario, SkippedError, at_most, near
from benchmarks.container import native_env
from vgpu.adapters.nvml.records import BusySamples
from vgpu.adapters.nvml.session import Nvml
from vgpu.domain.errors import NvmlError
from vgpu.domain.identifiers import CardUuid, ContainerName, PodUid
from vgpu.node.usage.long_kernels import KernelLengths

if TYPE_CHECKING:
    from vgpu.domain.formats.region import CardUse
    from vgpu.node.usage.gpu_time import Use

SHORT_US: Final = 500
S: Final = 1_000_000  # us
LONG_SECONDS: Final = {S // 10: 20.0, 7 * S // 10: 20.0, 3 * S: 300.0}  # us of a kernel, seconds of the measurement
LEAST_PERIODS: Final = 8  # of the long kernels at their share: the first ones, which were never measured, are repaid
NATIVE_SECONDS: Final = {S // 10: 5.0, 7 * S // 10: 10.0, 3 * S: 20.0}  # natively only the time slices are to be seen
LONG_SHARES: Final = ((30, 60), (10, 80), (80, 10))  # of the short kernels, of the long ones
WAITED_SHARES: Final = {S // 10: (60, 30), 7 * S // 10: (30, 60)}
SPIN_US: Final = S // 10
ENDLESS_US: Final = 3600 * S  # the program is killed long before
ENDLESS_SECONDS: Final = 14.0
NATIVE_ENDLESS_SECONDS: Final = 5.0
REPORT_S: Final = 10.0
LONG_PART, ENDLESS_PART = "long", "endless"


@dataclass(frozen=True, slots=True)
class LongPair:
    """Short kernels beside long ones, both at fixed shares.

    Attributes:
        part: of the command line.
        name: in the table.
        long: the program with the long kernels.
        shares: percent of the short kernels, of the long ones.
        seconds: of the measurement.
        native_seconds: of the measurement without shares.
    """

    part: str
    name: str
    long: TimedLoad
    shares: tuple[int, int]
    seconds: float
    native_seconds: float

    def scenario(self) -> Scenario:
        """Return the scenario: both within 3 points of their shares."""
        goals = {f"fixed {cores} %": near(cores, 3) for cores in self.shares}
        return Scenario(self.part, self.name, goals, self._measure)

    def _measure(self, place: LaunchPlace) -> Figures:
        loads = (TimedLoad("steady", SHORT_US), self.long)
        envs = [place.container(cores) for cores in self.shares]
        seconds = self.native_seconds if place.native else self.seconds
        answers = run_together(list(zip(loads, envs, strict=True)), seconds)
        return {
            f"fixed {cores} %": share(answer, load.us)
            for cores, answer, load in zip(self.shares, answers, loads, strict=True)
        }


def long_kernels() -> list[Scenario]:
    """Return kernels of each length at each pair of shares, and programs that wait for each kernel."""
    return [
        *(_pair("steady", us, shares).scenario() for us in LONG_SECONDS for shares in LONG_SHARES),
        *(_pair("waited", us, shares).scenario() for us, shares in WAITED_SHARES.items()),
    ]


def _pair(kind: str, us: int, shares: tuple[int, int]) -> LongPair:
    waited = ", each waited for," if kind == "waited" else ""
    name = f"kernels of 0.5 ms at fixed {shares[0]} beside kernels of {us / S:g} s{waited} at fixed {shares[1]}"
    seconds = max(LONG_SECONDS[us], LEAST_PERIODS * us / S * 100 / shares[1])
    return LongPair(LONG_PART, name, TimedLoad(kind, us), shares, seconds, NATIVE_SECONDS[us])


def endless_kernels() -> list[Scenario]:
    """Return kernels that spin for 0.1 s, and one that never ends, beside short kernels of a program at fixed 60."""
    name = f"kernels of 0.5 ms at fixed 60 beside kernels that spin for {SPIN_US / S:g} s at fixed 30"
    spinning = LongPair(ENDLESS_PART, name, TimedLoad("spin", SPIN_US), (60, 30), 20.0, 5.0)
    goals = {
        "the others, of alone %": SHOWN,
        "the others' kernels p50 ms": SHOWN,
        "the others' kernels p99 ms": SHOWN,
        "reported after s": at_most(REPORT_S),
    }
    name = "a kernel that never ends at fixed 30 beside kernels of 0.5 ms at fixed 60"
    return [spinning.scenario(), Scenario(ENDLESS_PART, name, goals, _endless)]


def _endless(place: LaunchPlace) -> Figures:
    """Start the kernel that never ends a second before the others' kernels count, and kill its program afterwards."""
    seconds, alone = NATIVE_ENDLESS_SECONDS if place.native else ENDLESS_SECONDS, _share_alone()
    envs = [place.container(30), place.container(60)]
    loops = {"BENCH_LOOPS": str(loops_per_ms(FeederLoad("work", 1000)))}
    endless = Feeder(TimedLoad("endless", ENDLESS_US), seconds, {**envs[0], **loops})
    others = Feeder(TimedLoad("steady", SHORT_US), seconds, {**envs[1], **loops})
    try:
        for feeder in (others, endless):
            feeder.await_start()
        begin_ns = time.monotonic_ns() + WARM_NS
        others.go(begin_ns)
        endless.go(begin_ns)
        reported = {} if place.native else {"reported after s": report_s(envs, [endless.pid, others.pid], seconds)}
        return others_figures(others.answer(), alone) | reported
    finally:
        endless.send_signal(signal.SIGKILL)
        endless.end()
        others.end()


def others_figures(answer: Mapping[str, Any], alone: float) -> dict[str, float]:
    """Return what the others get, over what they do natively alone, and the time from one kernel's end to the next."""
    gaps = [(after - before) / 1e3 for before, after in itertools.pairwise(answer["times_us"])]
    return {
        "the others, of alone %": 100 * share(answer, SHORT_US) / alone,
        "the others' kernels p50 ms": statistics.median(gaps),
        "the others' kernels p99 ms": statistics.quantiles(gaps, n=100)[98],
    }


@functools.cache
def _share_alone() -> float:
    return share(run_together([(TimedLoad("steady", SHORT_US), native_env())], 2.0)[0], SHORT_US)


def report_s(envs: Sequence[Env], pids: Sequence[int], most: float) -> float:
    """Return the seconds until the endless kernel of the first container is found; `most` if it is not.

    The device plugin looks in the same way each second, and reports what it finds as an Event and a metric.
    """
    begun = time.monotonic()
    try:
        with Nvml() as nvml:
            watch = EndlessWatch(nvml, envs, pids)
            while time.monotonic() < begun + most:
                time.sleep(1)
                if watch.finds():
                    break
    except NvmlError as error:
        raise SkippedError(f"needs NVML: {error}") from error
    return time.monotonic() - begun


class EndlessWatch:
    """Looks for an endless kernel of the first of some containers, by NVML's samples and the regions."""

    def __init__(self, nvml: Nvml, envs: Sequence[Env], pids: Sequence[int]) -> None:
        self._nvml = nvml
        self._envs = envs
        self._pids = pids
        self._lengths = KernelLengths()
        self._since_us = time.time_ns() // 1000

    def finds(self) -> bool:
        """Look once; return whether the first container has an endless kernel."""
        accounts = [next(iter(cards_of(env)), None) for env in self._envs]
        gpu = next((account.gpu for account in accounts if account), None)
        if gpu is None:
            return False
        sample = self._nvml.busy_samples({gpu: self._since_us}).get(gpu, BusySamples())
        self._since_us = max((at for _, at, _ in sample.processes), default=self._since_us)
        uses = [_use(number, gpu) for number in range(len(self._envs))]
        held: dict[Use, CardUse | None] = dict(zip(uses, accounts, strict=True))
        owners = owners_of(sample.pids, self._pids)
        named = {(gpu, pid): uses[number] for pid, number in owners.items()}
        self._lengths.look(held, {gpu: sample}, named, time.monotonic_ns())
        return uses[0] in self._lengths.endless_s


def _use(number: int, gpu: CardUuid) -> "Use":
    return PodUid(str(number)), ContainerName("main"), gpu


def owners_of(seen: Sequence[int] | frozenset[int], pids: Sequence[int]) -> dict[int, int]:
    """Return the number of the program of each pid that NVML has seen.

    In a pid namespace NVML may name the host's pids. Where it knows none of the programs, all are taken for the first
    one: it counts as endless only if it launches nothing, so samples of the others do no harm.
    """
    known = {pid: pids.index(pid) for pid in seen if pid in pids}
    return known or dict.fromkeys(seen, 0)


def share(answer: Mapping[str, Any], us: int) -> float:
    """Return the percentage of the time that kernels of `us` took, from the end of the first to that of the last.

    0 where fewer than two ended.
    """
    ends = answer["times_us"]
    return float(100 * us * (len(ends) - 1) / (ends[-1] - ends[0])) if len(ends) > 1 else 0.0
