"""How late the host wakes a thread: a launch that waits for a processor does not wait for the card."""

import threading
import time
from typing import Self

NAP_S = 0.002


class Lateness:
    """Sleeps in a thread while it is entered; `worst_ms` is the longest that a wakeup was late."""

    def __init__(self) -> None:
        self.worst_ms = 0.0
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._nap)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()

    def _nap(self) -> None:
        before = time.monotonic()
        while not self._ends.wait(NAP_S):
            now = time.monotonic()
            self.worst_ms = max(self.worst_ms, 1000 * (now - before - NAP_S))
            before = now
