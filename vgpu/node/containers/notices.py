"""Tells a container's programs what its pod was warned of: a file in a directory that the container has mounted.

`/run/vgpu/notices/idle` exists while the extender's warning about an idle pod stands, and contains its text.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from typing import Final

from vgpu.domain.identifiers import PodUid
from vgpu.node.containers.allocations import Allocation
from vgpu.node.containers.state_files import StateFiles

PERIOD_S: Final = 2.0

log = logging.getLogger(__name__)


class Notices:
    """The notices of all containers. `allocations` are the proven ones; `warning_of` returns a pod's, by its UID."""

    def __init__(
        self,
        files: StateFiles,
        allocations: Callable[[], Collection[Allocation]],
        warning_of: Callable[[PodUid], str],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._files = files
        self._allocations = allocations
        self._warning_of = warning_of
        self._sleep = sleep
        self._written: dict[str, str] = {}

    async def run(self) -> None:
        """Keep the files up to date, until cancelled."""
        while True:
            self.refresh()
            await self._sleep(PERIOD_S)

    def refresh(self) -> None:
        """Write the notices that have changed; a file of an earlier plugin is replaced, or removed."""
        wanted = {proven.id: self._warning_of(proven.holder.uid) for proven in self._allocations() if proven.holder}
        for allocation, text in wanted.items():
            if self._written.get(allocation) != text:
                self._write(allocation, text)
        self._written = wanted

    def _write(self, allocation: str, text: str) -> None:
        try:
            self._files.write_notice(allocation, f"{text}\n" if text else "")
        except OSError:
            log.exception("the notice of allocation %s", allocation)
