"""The driver's files as containers get them now, found again when the driver is replaced."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from deviceplugin.driver import files
from deviceplugin.driver.cdi import SpecificationFile
from deviceplugin.driver.discovery import DriverRoot
from deviceplugin.kubelet.messages import Mount
from vgpu.domain.errors import NvmlError, StateUnusable
from vgpu.node.cards.inventory import Inventory

_PERIOD_S: Final = 30.0

log = logging.getLogger(__name__)


class NodeDriver:
    """The driver's files; `version` asks for the driver's version and may raise NvmlError."""

    def __init__(self, root: DriverRoot, version: Callable[[], str]) -> None:
        """Find the files. Raises StateUnusable where they are not found."""
        self._root = root
        self._version = version
        self._complaint = ""
        self._mounts = self._found()

    def mounts(self) -> tuple[Mount, ...]:
        """Return what each container with a card gets."""
        return self._mounts

    def refresh(self) -> None:
        """Find the files again; keep the last ones where they are not found, as while the driver is replaced."""
        try:
            self._mounts = self._found()
            self._complaint = ""
        except StateUnusable as error:
            self._complain(str(error))

    def _found(self) -> tuple[Mount, ...]:
        try:
            version = self._version()
        except NvmlError as error:
            raise StateUnusable(f"the driver's version is unknown: {error}") from error
        return files.mounts(self._root.find(version))

    def _complain(self, complaint: str) -> None:
        if complaint != self._complaint:
            self._complaint = complaint
            log.error("containers get the files of the driver before: %s", complaint)


class DriverWatch:
    """Keeps the driver's files, and the CDI specification where there is one, as the node's driver and cards are."""

    def __init__(
        self,
        driver: NodeDriver,
        inventory: Inventory,
        control_nodes: Callable[[], tuple[str, ...]],
        specification: SpecificationFile | None,
        period_s: float = _PERIOD_S,
    ) -> None:
        self._driver = driver
        self._inventory = inventory
        self._control_nodes = control_nodes
        self._specification = specification
        self._period_s = period_s

    async def run(self) -> None:
        """Write the specification at once, at each change of the cards, and when the driver was replaced."""
        while True:
            seen = self._inventory.state
            self._write()
            try:
                async with asyncio.timeout(self._period_s):
                    await self._inventory.wait(seen)
            except TimeoutError:
                await asyncio.to_thread(self._driver.refresh)

    def _write(self) -> None:
        if self._specification is None:
            return
        try:
            self._specification.write(self._inventory.gpus(), self._control_nodes(), self._driver.mounts())
        except OSError as error:
            log.error("no CDI specification, so that no container with a card starts: %s", error)  # noqa: TRY400 - no fault of this program
