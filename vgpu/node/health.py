"""The cards' health: NVML is asked every few seconds, and reports XID errors as they happen.

An XID takes a card out at once, and not for ever: when it has answered without complaint, with no further XID, for the
quarantine's time, it is back. Errors of the application alone (an out-of-range address, a killed process) are not the
card's fault.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from typing import Final, Protocol

from vgpu.adapters.nvml import Gpu, Xid
from vgpu.errors import NvmlError
from vgpu.node.inventory import Inventory

# https://docs.nvidia.com/deploy/xid-errors/ : graphics engine exception, MMU fault, stopped or reset after an error of
# the application, preemptive cleanup after an earlier one, video processor exception, context switch time-out.
APPLICATION_XIDS: Final = frozenset({13, 31, 43, 45, 68, 109})
_XID_WAIT_MS: Final = 500  # an end of the program has to wait for it

log = logging.getLogger(__name__)


class Driver(Protocol):
    """NVML, or a stand-in."""

    def gpus(self) -> tuple[Gpu, ...]:
        """Every card that answers."""

    def fault(self, gpu: str) -> str:
        """What is wrong with a card, empty for nothing."""

    def subscribe(self, gpu: str) -> bool:
        """Have its errors reported."""

    def wait_for_xid(self, timeout_ms: int) -> Xid | None:
        """The next error."""


class Diagnosis:
    """Which cards are ill, and why: decided from XIDs and polls, with the time given."""

    def __init__(self, quarantine_s: float, ignored: Collection[int] = APPLICATION_XIDS) -> None:
        self._quarantine_s = quarantine_s
        self._ignored = ignored
        self._xids: dict[str, tuple[int, float]] = {}
        self._polled: dict[str, str] = {}

    def xid(self, xid: Xid, gpus: Collection[str], now: float) -> None:
        """Take an error in; one that no card is named for is every card's."""
        if xid.code in self._ignored:
            return
        for gpu in [xid.gpu] if xid.gpu else gpus:
            self._xids[gpu] = (xid.code, now)

    def polled(self, answers: Mapping[str, str]) -> None:
        """Take in what every card answered: empty for healthy."""
        self._polled = dict(answers)

    def faults(self, now: float) -> dict[str, str]:
        """Each ill card's reason: what NVML says now, else the XID whose quarantine is not over."""
        recent = {gpu: f"Xid{code}" for gpu, (code, at) in self._xids.items() if now - at < self._quarantine_s}
        return recent | {gpu: word for gpu, word in self._polled.items() if word}


class Health:
    """Keeps the inventory's cards and their faults up to date."""

    def __init__(
        self, driver: Driver, inventory: Inventory, diagnosis: Diagnosis, *, poll_s: float, clock: Callable[[], float]
    ) -> None:
        """Ask every `poll_s` seconds; `clock` gives seconds that never go back."""
        self._driver = driver
        self._inventory = inventory
        self._diagnosis = diagnosis
        self._poll_s = poll_s
        self._clock = clock

    async def check(self) -> None:
        """Ask NVML once, and tell the inventory."""
        gpus = await asyncio.to_thread(self._driver.gpus)
        known = {gpu.card.uuid for gpu in (*gpus, *self._inventory.gpus())}
        self._diagnosis.polled(await asyncio.to_thread(self._examine, sorted(known)))
        self._tell(gpus)

    async def poll(self) -> None:
        """Ask for ever."""
        while True:
            await asyncio.sleep(self._poll_s)
            try:
                await self.check()
            except NvmlError as error:
                log.warning("NVML: %s", error)
                self._diagnosis.polled({gpu.card.uuid: "NvmlFailed" for gpu in self._inventory.gpus()})
                self._tell(())

    async def listen(self) -> None:
        """Take XIDs in for ever."""
        while True:
            try:
                xid = await asyncio.to_thread(self._driver.wait_for_xid, _XID_WAIT_MS)
            except NvmlError as error:
                log.debug("no XID events: %s", error)
                await asyncio.sleep(self._poll_s)
                continue
            if xid is not None:
                log.warning("Xid %d on %s", xid.code, xid.gpu or "an unknown card")
                self._diagnosis.xid(xid, [gpu.card.uuid for gpu in self._inventory.gpus()], self._clock())
                self._tell(())

    def _examine(self, gpus: list[str]) -> dict[str, str]:
        for gpu in gpus:
            self._driver.subscribe(gpu)
        return {gpu: self._driver.fault(gpu) for gpu in gpus}

    def _tell(self, gpus: tuple[Gpu, ...]) -> None:
        before = self._inventory.state.faults
        self._inventory.set_gpus(gpus, self._diagnosis.faults(self._clock()))
        after = self._inventory.state.faults
        for gpu in sorted(before.keys() | after.keys()):
            if before.get(gpu) != after.get(gpu):
                log.info("card %s: %s", gpu, after.get(gpu) or "healthy again")
