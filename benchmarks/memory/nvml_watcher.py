"""The truth: what NVML says is used on the first card, read all the time by a process that nobody limits."""

import threading
import time
from typing import Self

import pynvml

_EVERY_S = 0.002
_STILL_S = 0.3  # what has not changed for so long stays
_NEAR = 8 << 20


class Watcher:
    """Reads the card until it is left. Its figures are bytes above what was used when it was entered."""

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

    def describe(self) -> dict[str, str]:
        """Return the card's model and its driver."""
        return {
            "gpu": str(pynvml.nvmlDeviceGetName(self._card)),
            "driver": str(pynvml.nvmlSystemGetDriverVersion()),
        }

    def used(self) -> int:
        """Return what is used now."""
        return self._read() - self._before

    def used_by(self, pid: int) -> int:
        """Return what NVML says of a process; 0 where it says nothing."""
        held = {each.pid: each.usedGpuMemory for each in pynvml.nvmlDeviceGetComputeRunningProcesses(self._card)}
        return int(held.get(pid) or 0)

    def peak(self) -> int:
        """Return the most that was seen since the last `restart`."""
        self._see()
        return self._peak

    def restart(self) -> None:
        """Forget the peak."""
        self._peak = 0

    def settle(self) -> None:
        """Wait until what the dead held is freed, a little after their deaths; then forget the peak."""
        seen, since = self.used(), time.monotonic()
        while seen > _NEAR and time.monotonic() < since + _STILL_S:
            time.sleep(_EVERY_S)
            if (now := self.used()) != seen:
                seen, since = now, time.monotonic()
        self.restart()

    def _read(self) -> int:
        return int(pynvml.nvmlDeviceGetMemoryInfo(self._card).used)

    def _see(self) -> None:
        self._peak = max(self._peak, self.used())

    def _watch(self) -> None:
        while not self._ended.wait(_EVERY_S):
            self._see()
