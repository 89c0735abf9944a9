"""The thread that makes the load."""

import contextlib
import threading
import time
from collections.abc import Iterator

import pytest

from vgpu.workloads.hold.generator import Generator


class Kernel:
    def __init__(self) -> None:
        self.runs: list[int] = []
        self.has_run = threading.Event()
        self.is_open = False

    def run(self, iterations: int) -> None:
        self.runs.append(iterations)
        self.has_run.set()

    @contextlib.contextmanager
    def opened(self) -> Iterator["Kernel"]:
        self.is_open = True
        yield self
        self.is_open = False


def test_the_load_runs_as_set_and_stops_at_once() -> None:
    kernel = Kernel()
    load = Generator(kernel.opened, time.monotonic)
    load.start()
    assert kernel.runs == []
    load.set(700)
    assert kernel.has_run.wait(5)
    load.set(0)
    assert load.stop(5)
    assert set(kernel.runs) == {700}
    assert not kernel.is_open


def test_a_card_that_cannot_be_opened_is_an_error_of_the_start() -> None:
    @contextlib.contextmanager
    def refused() -> Iterator[Kernel]:
        raise OSError("no card")
        yield Kernel()

    with pytest.raises(OSError, match="no card"):
        Generator(refused, time.monotonic).start()


def test_a_failure_while_it_runs_is_raised_by_the_next_check() -> None:
    class Broken(Kernel):
        def run(self, iterations: int) -> None:
            super().run(iterations)
            raise OSError("the card is lost")

    kernel = Broken()
    load = Generator(kernel.opened, time.monotonic)
    load.start()
    load.set(1)
    assert kernel.has_run.wait(5)
    assert load.stop(5)
    with pytest.raises(OSError, match="lost"):
        load.check()
