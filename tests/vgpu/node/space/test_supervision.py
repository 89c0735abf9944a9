"""Whether pods of groups in space may be placed on a node: what the device plugin reports of its supervisor."""

import asyncio
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.vgpu.node.builders import gpu
from vgpu.node.cards.inventory import Inventory
from vgpu.node.gpunode import gpunode_status
from vgpu.node.space import supervision
from vgpu.node.space.directories import SUPERVISED_S, SpaceDirectories


@pytest.fixture
def state() -> Iterator[Path]:
    # Paths of pytest's folders are too long for sockets.
    with TemporaryDirectory(prefix="s") as folder:
        yield Path(folder)


@pytest.mark.heavy
async def test_a_card_serves_groups_while_a_supervisor_runs(state: Path) -> None:
    new, old = replace(gpu(0).card, serves_space=True), gpu(1).card
    inventory, now = Inventory(256), time.time()
    inventory.set_gpus((replace(gpu(0), card=new), replace(gpu(1), card=old)), {})

    def shown() -> list[bool]:
        status = gpunode_status.status_of(inventory.state, 256, "1", ())
        return [card["servesSpace"] for card in status["cards"]]

    watching = asyncio.create_task(supervision.watch(state, lambda: now, inventory.set_supervised))
    try:
        await asyncio.sleep(0.01)
        assert shown() == [False, False]
        SpaceDirectories(state / "space").set_supervised(is_supervised=True)
        await asyncio.wait_for(inventory.wait(), 5)
        assert shown() == [True, False]
        now += SUPERVISED_S + 1
        await asyncio.wait_for(inventory.wait(), 5)
        assert shown() == [False, False]
    finally:
        watching.cancel()


def test_a_state_directory_that_is_too_long_for_sockets_is_not_supervised(tmp_path: Path) -> None:
    assert not supervision.is_supervised(tmp_path / ("long" * 30), time.time())
