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

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._buckets: OrderedDict[str, TokenBucket] = OrderedDict()

    def check(self, caller: str) -> None:
        """Count a request. Raises AdminProblem with Retry-After where the caller makes too many."""
        if caller not in self._buckets:
            self._buckets[caller] = TokenBucket(PER_S, BURST, self._clock)
        self._buckets.move_to_end(caller)
        if len(self._buckets) > MAX_CALLERS:
            self._buckets.popitem(last=False)
        if wait_s := self._buckets[caller].take():
            detail = f"more than {PER_S:g} requests a second; try again later"
            headers = {"Retry-After": str(int(wait_s) + 1)}
            raise AdminProblem(HTTPStatus.TOO_MANY_REQUESTS, detail, headers=headers)
