"""Health of the cards: XID errors, NVML's faults, and recovery."""

import asyncio
import contextlib
import time
from collections import deque

import pytest

from tests.vgpu.node.builders import SLICE_MIB, gpu, uuid
from vgpu.adapters.nvml import Gpu, Xid
from vgpu.errors import NvmlError
from vgpu.node.health import Diagnosis, Health
from vgpu.node.inventory import Inventory

A, B = uuid(0), uuid(1)


def test_after_an_xid_a_card_is_unhealthy_until_its_quarantine_ends() -> None:
    diagnosis = Diagnosis(60)
    diagnosis.xid(Xid(A, 79), [A, B], now=100)
    assert diagnosis.faults(159) == {A: "Xid79"}
    assert diagnosis.faults(160) == {}


def test_another_xid_starts_the_quarantine_again() -> None:
    diagnosis = Diagnosis(60)
    diagnosis.xid(Xid(A, 48), [A, B], now=100)
    diagnosis.xid(Xid(A, 79), [A, B], now=150)
    assert diagnosis.faults(205) == {A: "Xid79"}


def test_xids_of_application_errors_are_ignored() -> None:
    diagnosis = Diagnosis(60)
    for code in (13, 31, 43, 45, 68, 109):
        diagnosis.xid(Xid(A, code), [A, B], now=100)
    assert diagnosis.faults(101) == {}


def test_an_xid_without_a_card_counts_for_every_card() -> None:
    diagnosis = Diagnosis(60)
    diagnosis.xid(Xid(None, 79), [A, B], now=100)
    assert diagnosis.faults(101) == {A: "Xid79", B: "Xid79"}


def test_a_fault_of_nvml_lasts_while_nvml_reports_it() -> None:
    diagnosis = Diagnosis(60)
    diagnosis.polled({A: "GpuIsLost", B: ""})
    assert diagnosis.faults(0) == {A: "GpuIsLost"}
    diagnosis.polled({A: "", B: ""})
    assert diagnosis.faults(0) == {}


class Driver:
    """A driver of two cards, whose faults a test sets."""

    def __init__(self) -> None:
        self.cards: list[Gpu] = [gpu(0), gpu(1)]
        self.ill: dict[str, str] = {}
        self.xids: deque[Xid] = deque()
        self.subscribed: set[str] = set()
        self.broken = False
        self.code = 999

    def gpus(self) -> tuple[Gpu, ...]:
        if self.broken:
            raise NvmlError(self.code, "Error")
        return tuple(self.cards)

    def fault(self, gpu: str) -> str:
        return self.ill.get(gpu, "")

    def subscribe(self, gpu: str) -> bool:
        self.subscribed.add(gpu)
        return True

    def wait_for_xid(self, timeout_ms: int) -> Xid | None:
        time.sleep(min(timeout_ms, 10) / 1000)
        return self.xids.popleft() if self.xids else None


async def test_a_lost_card_stays_in_the_list_unhealthy_and_comes_back() -> None:
    driver, inventory = Driver(), Inventory(SLICE_MIB)
    health = Health(driver, inventory, Diagnosis(60), poll_s=0.01, clock=lambda: 0.0)
    await health.check()
    assert driver.subscribed == {A, B}
    lost = driver.cards.pop(0)
    driver.ill[A] = "GpuIsLost"
    await health.check()
    assert [each.card.uuid for each in inventory.gpus()] == [A, B]
    assert dict(inventory.state.faults) == {A: "GpuIsLost"}
    driver.cards.append(lost)
    driver.ill.clear()
    await health.check()
    assert dict(inventory.state.faults) == {}
    assert [each.card.index for each in inventory.gpus()] == [0, 1]


async def test_mig_is_a_fault() -> None:
    driver, inventory = Driver(), Inventory(SLICE_MIB)
    driver.cards = [gpu(0, mig=True)]
    await Health(driver, inventory, Diagnosis(60), poll_s=1, clock=lambda: 0.0).check()
    assert dict(inventory.state.faults) == {A: "MIGEnabled"}


async def test_polling_and_listening_continue_while_the_driver_fails() -> None:
    driver, inventory = Driver(), Inventory(SLICE_MIB)
    health = Health(driver, inventory, Diagnosis(0.05), poll_s=0.01, clock=asyncio.get_running_loop().time)
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
    health = Health(driver, inventory, Diagnosis(60), poll_s=0.01, clock=lambda: 0.0)
    starting = asyncio.create_task(health.start())
    await asyncio.sleep(0.05)
    assert not starting.done()
    driver.broken = False
    async with asyncio.timeout(5):
        await starting
    assert [each.card.uuid for each in inventory.gpus()] == [A, B]


async def test_only_the_library_of_a_replaced_driver_ends_the_polls() -> None:
    driver, inventory = Driver(), Inventory(SLICE_MIB)
    health = Health(driver, inventory, Diagnosis(60), poll_s=0.01, clock=lambda: 0.0)
    driver.broken, driver.code = True, 18
    async with asyncio.timeout(5):
        for polls in (health.start(), health.poll()):
            with pytest.raises(NvmlError, match="Error"):
                await polls
