"""Faults of MPS servers on this node, for the reports about them.

The supervisor notes a fault where the daemon still says so when it is asked, once a second. Where all clients have
exited before, their own limiters have left word of it (`vgpu.node.space.seen_faults`).
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

from vgpu.domain.json_types import JsonObject
from vgpu.node.containers.allocations import Allocation
from vgpu.node.containers.bound_pod import BoundPod
from vgpu.node.gpunode import fault_reports
from vgpu.node.space import directories
from vgpu.node.space.seen_faults import SeenFault

if TYPE_CHECKING:
    from vgpu.node.space.directories import GroupOnCard, SpaceDirectories

PERIOD_S: Final = 1.0
SAME_S: Final = 3.0  # within which the supervisor may note a fault that clients have seen already


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
        seen: Callable[[str], SeenFault | None] = lambda _: None,
    ) -> None:
        """`state` is the state directory; `wall_clock` returns seconds since 1970.

        `seen` returns which fault the processes of an allocation have seen last.
        """
        self.on_change: Callable[[], None] = lambda: None
        self._state, self._wall_clock = state, wall_clock
        self._allocations, self._pods, self._seen = allocations, pods, seen
        self._found: fault_reports.Faulted = frozenset()
        self._begun = wall_clock()
        self._last: dict[GroupOnCard, float] = {}
        self._seen_at: dict[GroupOnCard, float] = {}  # the last fault that was known from clients first
        self.counts: Mapping[GroupOnCard, int] = {}

    async def run(self) -> NoReturn:
        """Look every second until cancelled. Raises OSError."""
        while True:
            self.look()
            await asyncio.sleep(PERIOD_S)

    def look(self) -> None:
        """Look once. Raises OSError."""
        groups = directories.below_state(self._state)
        noted = self._noted(groups) if groups else {}
        self._count(noted)
        found = fault_reports.faulted(groups, noted, self._allocations(), self._wall_clock())
        is_changed, self._found = found != self._found, found
        if is_changed:
            self.on_change()

    def _noted(self, groups: "SpaceDirectories") -> "dict[GroupOnCard, float]":
        """Return when the server of each group has faulted last; of groups with members also by what those have seen.

        A time that a region said stays when its container has started again with a new one.
        """
        noted = groups.faults()
        for of in groups.wanted():
            seen = [fault for member in groups.members(of) if (fault := self._seen(member))]
            known = max(noted.get(of, 0.0), self._last.get(of, 0.0))
            at = last_fault(known, seen)
            if at > known:
                self._seen_at[of] = at
            if at:
                noted[of] = at
        return noted

    def _count(self, noted: "dict[GroupOnCard, float]") -> None:
        """Count the faults that were noted since the last look; two between two looks count once."""
        new = {of for of, at in noted.items() if at > self._last.get(of, self._begun) + self._margin_s(of)}
        self.counts = {of: self.counts.get(of, 0) + (of in new) for of in noted}
        self._last = noted

    def _margin_s(self, of: "GroupOnCard") -> float:
        is_seen_first = of in self._seen_at and self._seen_at[of] == self._last.get(of)
        return SAME_S if is_seen_first else 0.0

    def reports(self, most: int) -> list[JsonObject]:
        """Return an entry for each pod, at most `most`, as `status.refusals` of a GPUNode lists them."""
        return fault_reports.reports(self._found, self._pods(), most)


def last_fault(noted: float, seen: Collection[SeenFault]) -> float:
    """Return when a server has faulted last: as `noted`, or by clients that it had later. 0: never.

    A client sees a fault when it next asks something of the card, however late, so one of before the fault that is
    known already has seen no other.
    """
    for fault in sorted(seen, key=lambda found: found.at):
        if fault.since > noted:
            noted = fault.at
    return noted
