"""A token bucket: limits a kind of request to a rate, with a burst."""

from collections.abc import Callable


class TokenBucket:
    """Holds at most `burst` tokens, and gets `rate_per_s` new ones a second. `clock` is monotonic, in seconds."""

    def __init__(self, rate_per_s: float, burst: int, clock: Callable[[], float]) -> None:
        self._rate_per_s = rate_per_s
        self._burst = burst
        self._clock = clock
        self._tokens = float(burst)
        self._at = clock()

    def take(self) -> float:
        """Take a token and return 0, or take none and return after how many seconds a token is there."""
        self._refill()
        if self._tokens >= 1:
            self._tokens -= 1
            return 0.0
        return (1 - self._tokens) / self._rate_per_s

    def reserve(self, tokens: int) -> float:
        """Take tokens, even those that the bucket does not have yet; return the seconds until it has the last one."""
        self._refill()
        self._tokens -= tokens
        return max(0.0, -self._tokens / self._rate_per_s)

    def _refill(self) -> None:
        now = self._clock()
        self._tokens = min(self._burst, self._tokens + (now - self._at) * self._rate_per_s)
        self._at = now
