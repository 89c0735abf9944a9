"""The arbiter in the plugin's care: the plugin serves without it, and ends it. The program here is a stand-in."""

import pytest

from tests.deviceplugin.conftest import World
from tests.vgpu.node.pids import is_running, lives


@pytest.mark.parametrize("program", ["none", "state"])
async def test_without_it_the_plugin_serves(world: World, program: str, caplog: pytest.LogCaptureFixture) -> None:
    world.settings.arbiter = world.directory / program
    world.start_plugin()
    await world.until_registered()
    await world.run("p", gpus=1)
    assert caplog.text.count("containers of one card take no turns") == 1


async def test_the_plugin_s_end_is_the_arbiter_s(world: World) -> None:
    world.start_plugin()
    await world.until_registered()
    (pid,) = await lives(world.directory / "arbiter-pids")
    await world.stop_plugin()
    assert not is_running(pid)


async def test_it_can_be_switched_off(world: World) -> None:
    world.settings.turns = False
    world.start_plugin()
    await world.until_registered()
    assert not (world.directory / "arbiter-pids").exists()
