"""Waiting for what a program that runs beside the test does."""

import time
from collections.abc import Callable


def eventually(holds: Callable[[], bool], within_s: float = 10) -> None:
    """Wait until it holds."""
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)
