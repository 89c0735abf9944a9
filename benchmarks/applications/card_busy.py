"""For how long a card has work, by NVML's samples."""

import importlib
import threading
import time
from contextlib import suppress
from typing import Any, Final, Self

LATE_SAMPLES_S: Final = 1.0
PERIOD_S: Final = 1.0  # the driver keeps samples of about 20 s


class CardBusy:
    """Watches the first card while the context is entered; `seconds` of work afterwards, 0 without samples."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._samples: dict[int, int] = {}  # percent of the time since the sample before, by us since 1970
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._nvml: Any = importlib.import_module("pynvml")
        self._nvml.nvmlInit()
        self._card = self._nvml.nvmlDeviceGetHandleByIndex(0)
        self._since_us = time.time_ns() // 1000
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        until_us = time.time_ns() // 1000
        time.sleep(LATE_SAMPLES_S)
        self._is_over.set()
        self._thread.join()
        self._read()
        self._nvml.nvmlShutdown()
        self.seconds = sampled_seconds(self._since_us, until_us, self._samples)

    def _watch(self) -> None:
        while not self._is_over.wait(PERIOD_S):
            self._read()

    def _read(self) -> None:
        last_us = max(self._samples, default=self._since_us)
        with suppress(self._nvml.NVMLError):  # no new samples
            _, found = self._nvml.nvmlDeviceGetSamples(self._card, self._nvml.NVML_GPU_UTILIZATION_SAMPLES, last_us)
            self._samples |= {int(sample.timeStamp): int(sample.sampleValue.uiVal) for sample in found}


def sampled_seconds(since_us: int, until_us: int, samples: dict[int, int]) -> float:
    """Return the seconds of work between two times.

    Args:
        since_us: in us, as all times.
        until_us: samples that end later count for their part before it.
        samples: percent of the time since the sample before, by the sample's end.
    """
    total, last_us = 0.0, since_us
    for at_us, percent in sorted(samples.items()):
        if at_us > last_us:
            total += max(0, min(at_us, until_us) - last_us) / 1e6 * percent / 100
            last_us = at_us
    return total
