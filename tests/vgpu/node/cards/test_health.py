"""Health of the cards: XID errors, NVML's faults, and recovery."""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Iterable

import pytest

from tests.vgpu.node.builders import SLICE_MIB, gpu, uuid
from vgpu.adapters.nvml.records import Gpu, Xid
from vgpu.domain.errors import NvmlError
from vgpu.domain.identifiers import CardUuid
from vgpu.node.cards.diagnosis import CardDiagnosis
from vgpu.node.cards.health import Health
from vgpu.node.cards.inventory import Inventory

A, B = uuid(0), uuid(1)


class Driver:
    """A driver of two cards, whose faults a test sets."""

    def __init__(self) -> None:
        self.cards: list[Gpu] = [gpu(0), gpu(1)]
        self.ill: dict[str, str] = {}
        self.silent: set[str] = set()  # cards that have not answered yet
        self.xids: deque[Xid] = deque()
        self.subscribed: set[str] = set()
        self.broken = False
        self.code = 999

    def gpus(self) -> tuple[Gpu, ...]:
        if self.broken:
            raise NvmlError(self.code, "Error")
        return tuple(self.cards)

    def faults(self, gpus: Iterable[CardUuid]) -> dict[CardUuid, str]:
        return {gpu: self.ill.get(gpu, "") for gpu in gpus if gpu not in self.silent}

    def subscribe(self, gpus: Iterable[CardUuid]) -> frozenset[CardUuid]:
        self.subscribed |= set(gpus)
        return frozenset(gpus)

    def wait_for_xid(self, timeout_ms: int) -> Xid | None:
        time.sleep(min(timeout_ms, 10) / 1000)
        return self.xids.popleft() if self.xids else None


async def test_a_lost_card_stays_in_the_list_unhealthy_and_comes_back() -> None:
    driver, inventory = Driver(), Inventory(SLICE_MIB)
    health = Health(driver, inventory, CardDiagnosis(60), poll_s=0.01, clock=lambda: 0.0)
    await health.check()
    assert driver.subscribed == {A, B}
    lost = driver.cards.pop(0)
    driver.ill[A] = "GpuIsLost"
    await health.check()
    assert [known.card.uuid for known in inventory.gpus()] == [A, B]
    assert dict(inventory.state.faults) == {A: "GpuIsLost"}
    driver.cards.append(lost)
    driver.ill.clear()
    await health.check()
    assert dict(inventory.state.faults) == {}
    assert [known.card.index for known in inventory.gpus()] == [0, 1]


async def test_mig_is_a_fault() -> None:
    driver, inventory = Driver(), Inventory(SLICE_MIB)
    driver.cards = [gpu(0, mig=True)]
    await Health(driver, inventory, CardDiagnosis(60), poll_s=1, clock=lambda: 0.0).check()
    assert dict(inventory.state.faults) == {A: "MIGEnabled"}


async def test_polling_and_listening_continue_while_the_driver_fails() -> None:
    driver, inventory = Driver(), Inventory(SLICE_MIB)
    health = Health(driver, inventory, CardDiagnosis(0.05), poll_s=0.01, clock=asyncio.get_running_loop().time)
    await health.check()
    tasks = [asyncio.create_task(health.poll()), asyncio.create_task(health.listen())]

    async def until(faults: dict[str, str]) -> None:
        async with asyncio.timeout(5):
            while dict(inventory.state.faults) != faults:
                await inventory.wait()

    driver.broken = True
    await until({A: "NvmlFailed", B: "NvmlFailed"})
    driver.broken = False
    await until({})
    driver.xids.append(Xid(B, 79))
    await until({B: "Xid79"})
    await until({})
    for task in tasks:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def test_a_driver_that_fails_at_the_start_is_asked_again() -> None:
    driver, inventory = Driver(), Inventory(SLICE_MIB)
    driver.broken = True
    health = Health(driver, inventory, CardDiagnosis(60), poll_s=0.01, clock=lambda: 0.0)
    starting = asyncio.create_task(health.start())
    await asyncio.sleep(0.05)
    assert not starting.done()
    driver.broken = False
    async with asyncio.timeout(5):
        await starting
    assert [known.card.uuid for known in inventory.gpus()] == [A, B]


async def test_only_the_library_of_a_replaced_driver_ends_the_polls() -> None:
    driver, inventory = Driver(), Inventory(SLICE_MIB)
    health = Health(driver, inventory, CardDiagnosis(60), poll_s=0.01, clock=lambda: 0.0)
    driver.broken, driver.code = True, 18
    async with asyncio.timeout(5):
        for polls in (health.start(), health.poll()):
            with pytest.raises(NvmlError, match="Error"):
                await polls


async def test_an_xid_that_names_no_card_has_all_cards_polled_and_marks_the_one_that_is_lost() -> None:
    driver, inventory = Driver(), Inventory(SLICE_MIB)
    health = Health(driver, inventory, CardDiagnosis(60), poll_s=1000, clock=lambda: 0.0)
    await health.check()
    driver.ill[B] = "GpuIsLost"
    driver.xids.append(Xid(None, 79))
    listening = asyncio.create_task(health.listen())
    async with asyncio.timeout(5):
        while not inventory.state.faults:
            await inventory.wait()
    assert dict(inventory.state.faults) == {B: "GpuIsLost"}
    assert health.xids == {"": {"79": 1}}
    listening.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await listening


async def test_an_acknowledged_fault_ends_at_once() -> None:
    driver, inventory = Driver(), Inventory(SLICE_MIB)
    driver.ill[A] = "UncorrectableEcc2"
    health = Health(driver, inventory, CardDiagnosis(60, 3), poll_s=1, clock=lambda: 0.0)
    await health.check()
    health.acknowledge({A: "UncorrectableEcc2"})
    assert dict(inventory.state.faults) == {}


async def test_a_card_that_has_not_answered_yet_keeps_its_state_and_the_others_get_theirs() -> None:
    driver, inventory = Driver(), Inventory(SLICE_MIB)
    health = Health(driver, inventory, CardDiagnosis(60), poll_s=1, clock=lambda: 0.0)
    driver.ill[A] = "Unknown"
    await health.check()
    driver.silent, driver.ill[B] = {A}, "GpuIsLost"
    driver.ill[A] = ""
    await health.check()
    assert dict(inventory.state.faults) == {A: "Unknown", B: "GpuIsLost"}
