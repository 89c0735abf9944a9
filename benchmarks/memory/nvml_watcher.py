"""The reference figure: bytes in use on the first card by NVML, sampled all the time by a process without limits."""

import threading
import time
from typing import Self

import pynvml

_EVERY_S = 0.002
_STILL_S = 0.3  # a figure that has not changed for this long is final
_NEAR = 8 << 20


class Watcher:
    """Samples the card until the context is left. Figures are bytes above those at its construction."""

    def __init__(self) -> None:
        pynvml.nvmlInit()
        self._card = pynvml.nvmlDeviceGetHandleByIndex(0)
        self._before = self._read()
        self._peak = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    @property
    def uuid(self) -> str:
        """Return the card's UUID."""
        return str(pynvml.nvmlDeviceGetUUID(self._card))

    def used(self) -> int:
        """Return the bytes in use now."""
        return self._read() - self._before

    def used_by(self, pid: int) -> int:
        """Return the bytes that NVML lists for a process; 0 when it lists none."""
        held = {
            nvmlDeviceGetComputeRunningProcess.pid: nvmlDeviceGetComputeRunningProcess.usedGpuMemory
            for nvmlDeviceGetComputeRunningProcess in pynvml.nvmlDeviceGetComputeRunningProcesses(self._card)
        }
        return int(held.get(pid) or 0)

    def peak(self) -> int:
        """Return the highest sample since the last `reset_peak`."""
        self._sample()
        return self._peak

    def reset_peak(self) -> None:
        """Forget the highest sample."""
        self._peak = 0

    def await_free_memory(self) -> None:
        """Wait until the memory of dead processes is free, which takes a moment after their death; reset the peak."""
        seen, since = self.used(), time.monotonic()
        while seen > _NEAR and time.monotonic() < since + _STILL_S:
            time.sleep(_EVERY_S)
            if (now := self.used()) != seen:
                seen, since = now, time.monotonic()
        self.reset_peak()

    def _read(self) -> int:
        return int(pynvml.nvmlDeviceGetMemoryInfo(self._card).used)

    def _sample(self) -> None:
        self._peak = max(self._peak, self.used())

    def _watch(self) -> None:
        while not self._ended.wait(_EVERY_S):
            self._sample()
