"""Publishes the measured use of containers from time to time: one write of the GPUNode for all of them."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from vgpu.domain.cards import measured_use
from vgpu.domain.cards.measured_use import MeasuredUse
from vgpu.domain.json_types import JsonObject

REPORTS_PER_S: Final = 10  # of all nodes together: a cluster of 5,000 nodes reports each of them every 500 s


class UsageReporter:
    """Keeps the entries of `status.usage` and `status.cardUse`. `read` and `read_cards` return what was measured.

    `read_cards` asks the driver, which may hang, and runs in a thread.

    `nodes`, the number of nodes in the cluster, makes the period longer; `on_change` is called after each period in
    which there was something to report.
    """

    def __init__(
        self,
        read: Callable[[], Sequence[MeasuredUse]],
        period_s: float,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        read_cards: Callable[[], list[JsonObject]] = list,
    ) -> None:
        self._read = read
        self._read_cards = read_cards
        self._period_s = period_s
        self._sleep = sleep
        self._entries: list[JsonObject] = []
        self._cards: list[JsonObject] = []
        self.nodes = 1
        self.on_change: Callable[[], None] = lambda: None

    def entries(self) -> list[JsonObject]:
        """Return the entries as they were at the end of the last period."""
        return self._entries

    def card_entries(self) -> list[JsonObject]:
        """Return the entries about cards."""
        return self._cards

    async def run(self) -> None:
        """Take the entries every period, until cancelled."""
        while True:
            await self._sleep(max(self._period_s, self.nodes / REPORTS_PER_S))
            entries = [measured_use.as_json(use) for use in self._read()]
            cards = await asyncio.to_thread(self._read_cards)
            if (entries, cards) != (self._entries, self._cards):
                self._entries, self._cards = entries, cards
                self.on_change()
