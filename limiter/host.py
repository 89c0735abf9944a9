"""Time and randomness of the machine, which only entry points read and pass in."""

from collections.abc import Callable
from dataclasses import dataclass

_NS_PER_S = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Host:
    """What an entry point passes in.

    Attributes:
        monotonic_ns: nanoseconds that never go back (CLOCK_MONOTONIC).
        sleep: blocks for a number of seconds.
        new_id: returns a short random name that is safe in a path.
    """

    monotonic_ns: Callable[[], int]
    sleep: Callable[[float], None]
    new_id: Callable[[], str]

    def wait_until(self, condition: Callable[[], bool], *, timeout_s: float, period_s: float) -> bool:
        """Check the condition each period until it holds or the time is over; return whether it holds."""
        until = self.monotonic_ns() + int(timeout_s * _NS_PER_S)
        while not condition():
            if self.monotonic_ns() > until:
                return False
            self.sleep(period_s)
        return True
