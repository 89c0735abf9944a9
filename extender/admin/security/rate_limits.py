"""Token buckets: how many requests each caller may make. The number of buckets is bounded."""

from collections import OrderedDict
from collections.abc import Callable
from http import HTTPStatus
from typing import Final

from extender.admin.problems import AdminProblem
from vgpu.pacing.token_bucket import TokenBucket

BURST: Final = 100
PER_S: Final = 50.0
MAX_CALLERS: Final = 4_096


class RateLimits:
    """A bucket for each caller; of very many callers the least recent ones start again with a full bucket."""

    def __init__(self, clock: Callable[[], float], burst: int = BURST, per_s: float = PER_S) -> None:
        self._clock = clock
        self._burst = burst
        self._per_s = per_s
        self._buckets: OrderedDict[str, TokenBucket] = OrderedDict()

    def check(self, caller: str) -> None:
        """Count a request. Raises AdminProblem with Retry-After where the caller makes too many."""
        if caller not in self._buckets:
            self._buckets[caller] = TokenBucket(self._per_s, self._burst, self._clock)
        self._buckets.move_to_end(caller)
        if len(self._buckets) > MAX_CALLERS:
            self._buckets.popitem(last=False)
        if wait_s := self._buckets[caller].take():
            detail = f"more than {self._per_s:g} requests a second; try again later"
            headers = {"Retry-After": str(int(wait_s) + 1)}
            raise AdminProblem(HTTPStatus.TOO_MANY_REQUESTS, detail, headers=headers)
