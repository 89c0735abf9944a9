"""The cards' health: NVML is polled every few seconds, and reports XID errors as they happen.

`vgpu/node/cards/diagnosis.py` decides, per card. After an XID that names no card all cards are polled at once: the
event of a card that has fallen off the bus may have lost its name.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final, Protocol

from vgpu.adapters.nvml.records import Gpu, Xid
from vgpu.domain.errors import NvmlError
from vgpu.domain.identifiers import UNNAMED_CARD, CardUuid
from vgpu.node.cards import other_plugins, xids
from vgpu.node.cards.diagnosis import CardDiagnosis
from vgpu.node.cards.inventory import Inventory
from vgpu.node.cards.other_plugins import Offers

_MAX_CODES: Final = 16  # of a card, each with a series of its own
_XID_WAIT_MS: Final = 500  # the program's end waits for this call

log = logging.getLogger(__name__)


async def _no_offers() -> Offers:
    return {}


class HealthDriver(Protocol):
    """What is asked of NVML."""

    def gpus(self) -> tuple[Gpu, ...]:
        """Return every card that answers. Raises NvmlError."""

    def faults(self, gpus: Iterable[CardUuid]) -> dict[CardUuid, str]:
        """Return what is wrong with each card, empty for nothing; a card that has not answered yet is left out."""

    def subscribe(self, gpus: Iterable[CardUuid]) -> frozenset[CardUuid]:
        """Subscribe to the cards' errors; return the cards that report them."""

    def wait_for_xid(self, timeout_ms: int) -> Xid | None:
        """Return the next error, None after the timeout. Raises NvmlError."""


class Health:
    """Keeps the inventory's cards and their faults up to date. `xids` counts the errors by card and code."""

    def __init__(
        self,
        driver: HealthDriver,
        inventory: Inventory,
        diagnosis: CardDiagnosis,
        *,
        poll_s: float,
        clock: Callable[[], float],
        node_fault: Callable[[], str] = lambda: "",
        offers: Callable[[], Awaitable[Offers]] = _no_offers,
    ) -> None:
        """Poll every `poll_s` seconds; `clock` is monotonic, in seconds.

        `node_fault` returns a fault of the node, which counts for every card; empty for none. `offers` returns what
        all device plugins of the node offer.
        """
        self._driver = driver
        self._inventory = inventory
        self._diagnosis = diagnosis
        self._node_fault = node_fault
        self._offers = offers
        self._poll_s = poll_s
        self._clock = clock
        self.xids: dict[CardUuid, dict[str, int]] = {}

    async def check(self) -> None:
        """Poll NVML once and update the inventory. Raises NvmlError."""
        gpus = await asyncio.to_thread(self._driver.gpus)
        known = {gpu.card.uuid: gpu.card for gpu in (*self._inventory.gpus(), *gpus)}
        offered = other_plugins.faults(await self._offers(), known.values())
        found = await asyncio.to_thread(self._faults, sorted(known))
        self._diagnosis.polled({gpu: fault or offered.get(gpu, "") for gpu, fault in found.items()})
        self._update(gpus)

    def acknowledge(self, faults: Mapping[CardUuid, str]) -> None:
        """Take the faults that an administrator has dealt with, by card."""
        self._diagnosis.acknowledge(faults)
        self._update(())

    async def start(self) -> None:
        """Poll until the driver has answered once. Raises NvmlError where only a restart helps."""
        while True:
            if await self._has_answered():
                return
            await asyncio.sleep(self._poll_s)

    async def poll(self) -> None:
        """Poll until cancelled. Raises NvmlError where only a restart helps."""
        while True:
            await asyncio.sleep(self._poll_s)
            await self._has_answered()

    async def listen(self) -> None:
        """Take XIDs until cancelled."""
        while True:
            try:
                xid = await asyncio.to_thread(self._driver.wait_for_xid, _XID_WAIT_MS)
            except NvmlError as error:
                log.debug("no XID events: %s", error)
                await asyncio.sleep(self._poll_s)
                continue
            if xid is not None:
                log.warning("Xid %d on %s", xid.code, xid.gpu or "an unknown card")
                self._count(xid)
                self._diagnosis.xid(xid, self._clock())
                if xid.gpu is None:
                    await self._has_answered()
                self._update(())

    def _count(self, xid: Xid) -> None:
        counts = self.xids.setdefault(xid.gpu or UNNAMED_CARD, {})
        code = str(xid.code) if str(xid.code) in counts or len(counts) < _MAX_CODES else "other"
        counts[code] = counts.get(code, 0) + 1

    async def _has_answered(self) -> bool:
        try:
            await self.check()
        except NvmlError as error:
            if error.needs_restart:
                raise
            log.warning("NVML: %s", error)
            self._diagnosis.polled({gpu.card.uuid: "NvmlFailed" for gpu in self._inventory.gpus()})
            self._update(())
            return False
        return True

    def _faults(self, gpus: list[CardUuid]) -> dict[CardUuid, str]:
        node_fault = self._node_fault()
        found = self._driver.faults(gpus)
        self._driver.subscribe([gpu for gpu, fault in found.items() if not fault])
        return {gpu: fault or node_fault for gpu, fault in found.items()}

    def _update(self, gpus: tuple[Gpu, ...]) -> None:
        before = self._inventory.state.faults
        self._inventory.set_gpus(gpus, self._diagnosis.faults(self._clock()))
        after = self._inventory.state.faults
        for gpu in sorted(before.keys() | after.keys()):
            if before.get(gpu) != after.get(gpu):
                log.info("card %s: %s", gpu, xids.describe(after[gpu]) if gpu in after else "healthy again")
