"""The clocks that the parts of the extender share. Tests replace them."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Clocks:
    """The time that the extender sees.

    Attributes:
        monotonic: seconds that only grow.
        now: the wall clock, aware of its zone.
        sleep: waits for a number of seconds.
    """

    monotonic: Callable[[], float]
    now: Callable[[], datetime]
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    def now_ms(self) -> int:
        """Return the wall clock in Unix milliseconds."""
        return int(self.now().timestamp() * 1000)
