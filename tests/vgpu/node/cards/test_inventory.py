"""The inventory of a node's cards: a waiting task misses no change, and each index names one card."""

import asyncio
from dataclasses import replace

from tests.vgpu.node.builders import gpu, uuid
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


def test_a_card_whose_index_another_card_has_now_is_gone() -> None:
    inventory, lost, swapped = Inventory(slice_mib=256), gpu(0), gpu(7)
    swapped = replace(swapped, card=replace(swapped.card, index=0))
    inventory.set_gpus((lost, gpu(1)), {})
    inventory.set_gpus((swapped, gpu(1)), {uuid(0): "NotFound"})
    assert [(known.card.index, known.card.uuid) for known in inventory.gpus()] == [(0, uuid(7)), (1, uuid(1))]
    assert dict(inventory.state.faults) == {}
    inventory.set_gpus((lost, gpu(1)), {})
    assert [known.card.uuid for known in inventory.gpus()] == [uuid(0), uuid(1)]


def test_a_card_that_does_not_answer_stays_and_so_do_cards_that_exchange_their_indexes() -> None:
    inventory = Inventory(slice_mib=256)
    inventory.set_gpus((gpu(0), gpu(1)), {})
    inventory.set_gpus((gpu(1),), {uuid(0): "GpuIsLost"})
    assert [known.card.uuid for known in inventory.gpus()] == [uuid(0), uuid(1)]
    first, second = replace(gpu(0).card, index=1), replace(gpu(1).card, index=0)
    inventory.set_gpus((replace(gpu(0), card=first), replace(gpu(1), card=second)), {})
    assert [known.card.uuid for known in inventory.gpus()] == [uuid(1), uuid(0)]
