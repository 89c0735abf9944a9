"""What a card does over a period, from NVML: for diagnosis, not for the device plugin. Calls block for milliseconds.

Cards from Hopper on have performance counters (GPM), which say how many multiprocessors work. Others only say whether
any kernel runs. https://docs.nvidia.com/deploy/nvml-api/group__nvmlGpmFunctions.html
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, Final, Self, TypeVar

import pynvml

from vgpu.domain.identifiers import CardUuid
from vgpu.domain.quantity import MIB

T = TypeVar("T")

_METRICS: Final = (
    pynvml.NVML_GPM_METRIC_GRAPHICS_UTIL,
    pynvml.NVML_GPM_METRIC_SM_UTIL,
    pynvml.NVML_GPM_METRIC_PCIE_TX_PER_SEC,
    pynvml.NVML_GPM_METRIC_PCIE_RX_PER_SEC,
)
_POWER: Final = pynvml.nvmlClocksEventReasonSwPowerCap | pynvml.nvmlClocksEventReasonHwPowerBrakeSlowdown
_HEAT: Final = pynvml.nvmlClocksEventReasonSwThermalSlowdown | pynvml.nvmlClocksEventReasonHwThermalSlowdown


@dataclass(frozen=True, slots=True)
class CardActivity:
    """What a card did, by whichever process; None where the card does not tell.

    Attributes:
        kernels: share of the time in which a kernel ran, 0 to 1.
        multiprocessors: mean share of the multiprocessors that worked, 0 to 1.
        copied_per_s: bytes a second over PCIe, both directions together.
        clock: mean clock of the multiprocessors as a share of the highest, 0 to 1.
        power: share of the samples in which power limited the clock, 0 to 1.
        heat: share of the samples in which the temperature limited the clock, 0 to 1.
    """

    kernels: float | None = None
    multiprocessors: float | None = None
    copied_per_s: float | None = None
    clock: float | None = None
    power: float = 0.0
    heat: float = 0.0


class Watch:
    """Watches a card from `__enter__` to `activity`. NVML must be initialised; a card that does not answer tells none.

    Call `sample` a few times a second in between.
    """

    def __init__(self, gpu: CardUuid) -> None:
        """`gpu`: the card's UUID."""
        self._handle = _or_none(lambda: pynvml.nvmlDeviceGetHandleByUUID(gpu))
        self._samples: list[tuple[float | None, float | None, int]] = []
        self._counters: list[Any] = []

    def __enter__(self) -> Self:
        if self._handle and _or_none(lambda: pynvml.nvmlGpmQueryDeviceSupport(self._handle).isSupportedDevice):
            self._counters = [sample for _ in range(2) if (sample := _or_none(pynvml.nvmlGpmSampleAlloc)) is not None]
            self._read_counters(0)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for counter in self._counters:
            _is_done(partial(pynvml.nvmlGpmSampleFree, counter))

    def sample(self) -> None:
        """Take a sample of utilization and clock."""
        handle = self._handle
        rates = _or_none(lambda: pynvml.nvmlDeviceGetUtilizationRates(handle))
        now = _or_none(lambda: pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM))
        highest = _or_none(lambda: pynvml.nvmlDeviceGetMaxClockInfo(handle, pynvml.NVML_CLOCK_SM))
        reasons = _or_none(lambda: pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle)) or 0
        self._samples.append((rates.gpu / 100 if rates else None, now / highest if now and highest else None, reasons))

    def activity(self) -> CardActivity:
        """Return what the card has done since `__enter__`."""
        reasons = [sample[2] for sample in self._samples]
        kernels, *others = self._counted() or (_mean([sample[0] for sample in self._samples]),)
        multiprocessors, sent, received = others or (None, None, None)
        return CardActivity(
            kernels,
            multiprocessors,
            None if sent is None or received is None else (sent + received) * 100 * MIB,
            _mean([sample[1] for sample in self._samples]),
            _share(reasons, _POWER),
            _share(reasons, _HEAT),
        )

    def _read_counters(self, index: int) -> bool:
        return len(self._counters) > index and _is_done(
            lambda: pynvml.nvmlGpmSampleGet(self._handle, self._counters[index])
        )

    def _counted(self) -> tuple[float, ...]:
        """Return the performance counters' metrics, as shares of 100; empty where there are none."""
        if not self._read_counters(1):
            return ()
        asked = pynvml.c_nvmlGpmMetricsGet_t()
        asked.version, asked.numMetrics = pynvml.NVML_GPM_METRICS_GET_VERSION, len(_METRICS)
        asked.sample1, asked.sample2 = self._counters
        for place, metric in enumerate(_METRICS):
            asked.metrics[place].metricId = metric
        if not _is_done(lambda: pynvml.nvmlGpmMetricsGet(asked)):
            return ()
        found = asked.metrics[: len(_METRICS)]
        return () if any(value.nvmlReturn for value in found) else tuple(value.value / 100 for value in found)


def _or_none(question: Callable[[], T]) -> T | None:
    try:
        return question()
    except pynvml.NVMLError:
        return None


def _is_done(work: Callable[[], object]) -> bool:
    try:
        work()
    except pynvml.NVMLError:
        return False
    return True


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _share(reasons: Sequence[int], bits: int) -> float:
    return sum(bool(reason & bits) for reason in reasons) / len(reasons) if reasons else 0.0
