"""Faults of MPS servers on this node, as the supervisor notes them, for the reports about them."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

from vgpu.domain.json_types import JsonObject
from vgpu.node.containers.allocations import Allocation
from vgpu.node.containers.bound_pod import BoundPod
from vgpu.node.gpunode import fault_reports
from vgpu.node.space import directories

if TYPE_CHECKING:
    from vgpu.node.space.directories import GroupOnCard

PERIOD_S: Final = 1.0


class GroupFaults:
    """The members whose group's server has faulted lately. `on_change` may be set: it is called when they change.

    Attributes:
        counts: how often the server of each group was seen to fault since this object was made; a group that has ended,
            or has never had a fault, is left out.
    """

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
        self._begun = wall_clock()
        self._last: dict[GroupOnCard, float] = {}
        self.counts: Mapping[GroupOnCard, int] = {}

    async def run(self) -> NoReturn:
        """Look every second until cancelled. Raises OSError."""
        while True:
            self.look()
            await asyncio.sleep(PERIOD_S)

    def look(self) -> None:
        """Look once. Raises OSError."""
        groups = directories.below_state(self._state)
        noted = groups.faults() if groups else {}
        self._count(noted)
        found = fault_reports.faulted(groups, noted, self._allocations(), self._wall_clock())
        is_changed, self._found = found != self._found, found
        if is_changed:
            self.on_change()

    def _count(self, noted: "dict[GroupOnCard, float]") -> None:
        """Count the faults that were noted since the last look; two between two looks count once."""
        new = {of for of, at in noted.items() if at > self._last.get(of, self._begun)}
        self.counts = {of: self.counts.get(of, 0) + (of in new) for of in noted}
        self._last = noted

    def reports(self, most: int) -> list[JsonObject]:
        """Return an entry for each pod, at most `most`, as `status.refusals` of a GPUNode lists them."""
        return fault_reports.reports(self._found, self._pods(), most)
