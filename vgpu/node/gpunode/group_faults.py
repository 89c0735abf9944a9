"""Faults of MPS servers on this node, as the supervisor notes them, for the reports about them."""

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, NoReturn

from vgpu.domain.json_types import JsonObject
from vgpu.node.containers.allocations import Allocation
from vgpu.node.containers.pods import BoundPod
from vgpu.node.gpunode import fault_reports

PERIOD_S: Final = 1.0


class GroupFaults:
    """The members whose group's server has faulted lately. `on_change` may be set: it is called when they change."""

    def __init__(
        self,
        state: Path,
        wall_clock: Callable[[], float],
        allocations: Callable[[], Iterable[Allocation]],
        pods: Callable[[], Iterable[BoundPod]],
    ) -> None:
        """`state` is the state directory; `wall_clock` returns seconds since 1970."""
        self.on_change: Callable[[], None] = lambda: None
        self._state, self._wall_clock = state, wall_clock
        self._allocations, self._pods = allocations, pods
        self._found: fault_reports.Faulted = frozenset()

    async def run(self) -> NoReturn:
        """Look every second until cancelled. Raises OSError."""
        while True:
            self.look()
            await asyncio.sleep(PERIOD_S)

    def look(self) -> None:
        """Look once. Raises OSError."""
        found = fault_reports.faulted(self._state, self._allocations(), self._wall_clock())
        is_changed, self._found = found != self._found, found
        if is_changed:
            self.on_change()

    def reports(self, most: int) -> list[JsonObject]:
        """Return an entry for each pod, at most `most`, as `status.refusals` of a GPUNode lists them."""
        return fault_reports.reports(self._found, self._pods(), most)
