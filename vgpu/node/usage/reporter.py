"""Publishes the measured use of containers from time to time: one write of the GPUNode for all of them."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from vgpu.domain.cards import measured_use
from vgpu.domain.cards.measured_use import MeasuredUse
from vgpu.domain.json_types import JsonObject

REPORTS_PER_S: Final = 10  # of all nodes together: a cluster of 5,000 nodes reports each of them every 500 s


class UsageReporter:
    """Keeps the entries of `status.usage`. `read` returns what was measured.

    `nodes`, the number of nodes in the cluster, makes the period longer; `on_change` is called after each period in
    which there was something to report.
    """

    def __init__(
        self,
        read: Callable[[], Sequence[MeasuredUse]],
        period_s: float,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._read = read
        self._period_s = period_s
        self._sleep = sleep
        self._entries: list[JsonObject] = []
        self.nodes = 1
        self.on_change: Callable[[], None] = lambda: None

    def entries(self) -> list[JsonObject]:
        """Return the entries as they were at the end of the last period."""
        return self._entries

    async def run(self) -> None:
        """Take the entries every period, until cancelled."""
        while True:
            await self._sleep(max(self._period_s, self.nodes / REPORTS_PER_S))
            entries = [measured_use.as_json(use) for use in self._read()]
            if entries != self._entries:
                self._entries = entries
                self.on_change()
