"""Which allocations may still be in use although their pods have left the API: those of pods deleted by force.

A pod that ends normally is terminal before it is deleted, and its containers have ended by then. A deletion with a
grace period of 0 removes the pod at once. The kubelet then offers its devices to the next pod, while the containers
run on: for some seconds if they ignore SIGTERM, for longer in a driver call that does not return. Such an allocation
counts as held until no process has its limits file mounted (docs/adr/0146).
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

from vgpu.domain.formats import mounted
from vgpu.node.containers.allocations import Allocation, Allocations
from vgpu.node.containers.pods import NodePods

PERIOD_S: Final = 0.5
SETTLED_S: Final = 10.0  # by then a container that was being started when its pod was deleted has its mounts

Mountinfos = Callable[[], Mapping[int, str] | None]


class DepartedHolders:
    """The allocations of pods that were deleted by force.

    `mountinfos` reads the mounts of every process of the node, by pid; it returns None where they are not seen.
    `on_change` may be set: it is called when an allocation is found to be over, or in use again.
    """

    def __init__(
        self, pods: NodePods, allocations: Allocations, mountinfos: Mountinfos, clock: Callable[[], float]
    ) -> None:
        """`clock` is monotonic, in seconds."""
        self.on_change: Callable[[], None] = lambda: None
        self._pods = pods
        self._allocations = allocations
        self._mountinfos = mountinfos
        self._clock = clock
        self._since: dict[str, float] = {}  # when a look first found the pod gone, by allocation
        self._over: frozenset[str] = frozenset()
        self._used: frozenset[str] = frozenset()

    def held(self) -> tuple[Allocation, ...]:
        """Return the allocations that may be in use: those that no look has found to be over."""
        return tuple(allocation for allocation in self._departed() if allocation.id not in self._over)

    def is_used(self, allocation: Allocation) -> bool:
        """Whether the last look saw a process that uses the allocation of a pod that is gone."""
        return allocation.id in self._used

    async def run(self) -> None:
        """Look twice a second, while there is anything to look for, until cancelled."""
        while True:
            await asyncio.sleep(PERIOD_S)
            await self.look()

    async def look(self) -> None:
        """Look once which allocations are over.

        Where the processes of the node are not seen, each counts as held until its record is removed, some minutes
        after the kubelet has listed the pod for the last time.
        """
        open_ids = self._open()
        if not open_ids:
            return
        mountinfos = await asyncio.to_thread(self._mountinfos)
        if mountinfos is None:
            return
        used = frozenset(mounted.in_use(mountinfos)) & open_ids
        over = (self._over - open_ids) | (open_ids - used)
        changed, self._over, self._used = over != self._over, over, used
        if changed:
            self.on_change()

    def _open(self) -> frozenset[str]:
        """Return the allocations to look for: those that are not over for good."""
        now, departed = self._clock(), [allocation.id for allocation in self._departed()]
        self._since = {name: self._since.get(name, now) for name in departed}
        self._over &= self._since.keys()
        self._used &= self._since.keys()
        settled = {name for name in self._over if now - self._since[name] > SETTLED_S}
        return frozenset(departed) - settled

    def _departed(self) -> list[Allocation]:
        return [
            allocation
            for allocation in self._allocations.all()
            if (holder := allocation.holder) is not None
            and self._pods.get(holder.uid) is None
            and not self._pods.was_terminal(holder.uid)
        ]
