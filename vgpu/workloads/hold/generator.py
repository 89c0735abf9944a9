"""Makes the load: a thread that runs a kernel every 10 ms, of as many iterations as the loop last decided."""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Final, Protocol

PERIOD_S: Final = 0.010


class Kernel(Protocol):
    """A kernel on one card."""

    def run(self, iterations: int) -> None:
        """Run it once, and wait for its end."""


class Generator:
    """The load on one card. The card has a context from `start` to `stop`, asleep or not."""

    def __init__(self, opened: Callable[[], AbstractContextManager[Kernel]], clock: Callable[[], float]) -> None:
        """`opened` makes the kernel, in the load's own thread; `clock` is monotonic, in seconds."""
        self._opened = opened
        self._clock = clock
        self._iterations = 0
        self._is_ready = threading.Event()
        self._is_stopping = threading.Event()
        self._has_load = threading.Event()
        self._thread = threading.Thread(target=self._run, name="load", daemon=True)
        self.failure: BaseException | None = None

    def start(self) -> None:
        """Make the kernel; raise what that raised."""
        self._thread.start()
        self._is_ready.wait()
        self.check()

    def check(self) -> None:
        """Raise what ended the load, if anything did."""
        if self.failure is not None:
            raise self.failure

    def set(self, iterations: int) -> None:
        """Run this number of loop iterations every 10 ms from now on; 0 for no load."""
        self._iterations = iterations
        (self._has_load.set if iterations else self._has_load.clear)()

    def stop(self, timeout_s: float) -> bool:
        """End the load, and release the card; return whether that took less than the timeout."""
        self._is_stopping.set()
        self._has_load.set()
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            with self._opened() as kernel:
                self._is_ready.set()
                while not self._is_stopping.is_set():
                    self._has_load.wait()
                    self._run_period(kernel)
        except BaseException as error:  # noqa: BLE001 - raised in the thread that decides
            self.failure = error
            self._is_ready.set()

    def _run_period(self, kernel: Kernel) -> None:
        begun = self._clock()
        if self._iterations and not self._is_stopping.is_set():
            kernel.run(self._iterations)
        self._is_stopping.wait(max(0.0, begun + PERIOD_S - self._clock()))
