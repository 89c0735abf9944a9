"""The inventory of a node's cards: a waiting task misses no change."""

import asyncio

from vgpu.node.cards.inventory import HeldDevices, Inventory


def test_a_task_that_begins_after_the_change_returns_at_once() -> None:
    async def scenario() -> None:
        inventory = Inventory(slice_mib=256)
        waiting = asyncio.create_task(inventory.wait(inventory.state))
        inventory.set_held(HeldDevices(frozenset({"slice"})))
        await asyncio.wait_for(waiting, 1)

    asyncio.run(scenario())


def test_equal_values_are_no_change() -> None:
    async def scenario() -> bool:
        inventory = Inventory(slice_mib=256)
        waiting = asyncio.create_task(inventory.wait(inventory.state))
        await asyncio.sleep(0)
        inventory.set_held(HeldDevices())
        await asyncio.sleep(0)
        return waiting.done() or not waiting.cancel()

    assert not asyncio.run(scenario())
