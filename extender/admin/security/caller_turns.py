"""Turns at what few may use at once, such as the database: callers take it by turns, however many wait of one."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Final

from extender.admin.problems import AdminProblem
from vgpu.pacing.fair_queue import FairQueue

RETRY_AFTER: Final = {"Retry-After": "1"}


class CallerTurns:
    """At most `at_once` hold a turn. `most` may hold one or wait for one, and `most_of_caller` of one caller."""

    def __init__(self, at_once: int, most: int, most_of_caller: int) -> None:
        self._free = at_once
        self._most = most
        self._most_of_caller = most_of_caller
        self._counts = Counter[str]()
        self._waiting = FairQueue[str, object, asyncio.Future[None]]()

    @asynccontextmanager
    async def turn(self, caller: str) -> AsyncIterator[None]:
        """Hold a turn; it is the caller's after one of each other caller that waits. Raises AdminProblem: 503."""
        own, total = self._counts[caller], self._counts.total()
        if total >= self._most or own >= self._most_of_caller:
            detail = f"{own} of your questions wait, {total} in all"
            raise AdminProblem(HTTPStatus.SERVICE_UNAVAILABLE, detail, headers=RETRY_AFTER)
        self._counts[caller] += 1
        try:
            await self._enter(caller)
            try:
                yield
            finally:
                self._leave()
        finally:
            self._counts[caller] -= 1
            self._counts += Counter()  # forgets callers without questions

    async def _enter(self, caller: str) -> None:
        if self._free:
            self._free -= 1
            return
        granted, key = asyncio.get_running_loop().create_future(), object()
        self._waiting.put(caller, key, granted)
        try:
            await granted
        except asyncio.CancelledError:
            if self._waiting.pop(caller, key) is None:  # the turn came just before
                self._leave()
            raise

    def _leave(self) -> None:
        """Give the turn to the next one, or back."""
        if not self._waiting:
            self._free += 1
            return
        caller, key, granted = self._waiting.first()
        self._waiting.done(caller, key, granted)
        if not granted.done():
            granted.set_result(None)
