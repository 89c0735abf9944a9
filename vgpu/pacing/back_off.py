"""Back-off: the delay after failures in a row, which grows by a factor with each of them, up to a longest delay.

Pure: the caller counts the failures and draws the random numbers. A success sets its count back to zero.
"""

from dataclasses import dataclass
from typing import Final

_MAX_STEPS: Final = 300  # something may fail for months, and a float ends at 10 ** 308


@dataclass(frozen=True, slots=True)
class BackOff:
    """A schedule of delays in seconds.

    Attributes:
        first_s: the delay after the first failure.
        longest_s: no delay is longer; at least `first_s`.
        factor: by which the delay grows with each failure, from 1 to 10.
        jitter: the part of each delay that is random, from 0 to 1: it spreads the attempts of many clients.
    """

    first_s: float
    longest_s: float
    factor: float = 2.0
    jitter: float = 0.0

    def delay_s(self, failures: int, random: float = 1.0) -> float:
        """Return the seconds to wait after `failures`, at least one, in a row; `random` is a number from 0 to 1."""
        grown_s = min(self.longest_s, self.first_s * self.factor ** min(_MAX_STEPS, failures - 1))
        return grown_s * (1 - self.jitter * (1 - random))
