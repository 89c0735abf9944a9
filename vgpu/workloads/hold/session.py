"""Holds one card: samples its utilization, decides twice a second, and reports each decision.

NVML's utilization is a mean over up to a second on real cards, and the state of a moment on others: it is sampled every
47 ms, which is no multiple of the load's 10 ms, and the mean of the samples counts.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from vgpu.domain.identifiers import CardUuid
from vgpu.workloads.hold import control
from vgpu.workloads.hold.control import ControlState, HoldSettings, LoadMeasurement, Mode

SAMPLE_S: Final = 0.047
DECISION_NS: Final = 500_000_000
_OWN_LOAD_NS: Final = 1_500_000_000  # after its end the own load no longer shows in NVML's utilization


class Sensors(Protocol):
    """What is measured of the card."""

    def utilization(self) -> float | None:
        """Return the card's utilization in percent; None where it does not answer."""

    def others(self) -> bool:
        """Whether another process has used the card since the last call."""

    def job_cards(self) -> frozenset[CardUuid]:
        """Return the other cards of the job that has this card, whose ranks wait for each other."""

    def used_elsewhere(self) -> CardUuid | None:
        """Return one of `job_cards` that another process has used since the last call."""


class CardLoad(Protocol):
    """The load on the card."""

    def set(self, iterations: int) -> None:
        """Run this number of loop iterations every 10 ms; 0 for no load."""


@dataclass(frozen=True, slots=True)
class HoldReport:
    """A decision: what was measured and what follows. Percent, and loop iterations every 10 ms.

    `job_gpus`: the other cards of the job that has this card; use of one is use of all.
    """

    gpu: CardUuid
    mode: Mode
    target: float
    load: float | None
    multiplier: int
    message: str
    job_gpus: tuple[CardUuid, ...] = ()


class HoldSession:
    """One card. `report` takes decisions that change something or that a log shows."""

    def __init__(
        self,
        gpu: CardUuid,
        settings: HoldSettings,
        sensors: Sensors,
        load: CardLoad,
        report: Callable[[HoldReport], None],
        now_ns: int,
    ) -> None:
        self.state: ControlState = control.begin(now_ns)
        self.gpu = gpu
        self.load_percent: float | None = None
        self._settings = settings
        self._sensors = sensors
        self._load = load
        self._report = report
        self._samples: list[float] = []
        self._decided_ns = now_ns
        self._apply()

    def target(self, now_ns: int) -> float:
        """Return the target in percent that is in force."""
        return control.target_now(self._settings, self.state, now_ns)

    def sample(self, now_ns: int) -> None:
        """Take a sample; decide where the last decision is half a second old. Call it every `SAMPLE_S`."""
        utilization = self._sensors.utilization()
        if utilization is not None:
            self._samples.append(utilization)
        if now_ns - self._decided_ns >= DECISION_NS:
            self._decide(now_ns)

    def _decide(self, now_ns: int) -> None:
        mean = sum(self._samples) / len(self._samples) if self._samples else None
        is_used = self._sensors.others() or self._is_used_while_asleep(mean, now_ns)
        elsewhere = self._sensors.used_elsewhere()
        seen = LoadMeasurement(now_ns, mean, is_used or elsewhere is not None, "" if is_used else elsewhere or "")
        step = control.advance(self._settings, self.state, seen)
        before, self.state, self.load_percent = self.state, step.state, mean
        self._samples, self._decided_ns = [], now_ns
        if (before.mode, before.multiplier) != (step.state.mode, step.state.multiplier):
            self._apply()
        for line in step.log:
            mode, multiplier = self.state.mode, self.state.multiplier
            job = tuple(sorted(self._sensors.job_cards()))
            self._report(HoldReport(self.gpu, mode, self.target(now_ns), mean, multiplier, line, job))

    def _is_used_while_asleep(self, mean: float | None, now_ns: int) -> bool:
        """Whether the card is busy although no load is made: programs in a container do not see others' processes."""
        is_asleep = self.state.mode is Mode.SLEEP and now_ns - self.state.since_ns >= _OWN_LOAD_NS
        return is_asleep and mean is not None and mean >= 1

    def _apply(self) -> None:
        self._load.set(self.state.multiplier if self.state.mode is Mode.RUN else 0)
