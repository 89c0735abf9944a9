"""The plugin starts and stops the arbiter, and serves without it. The arbiter here is a script."""

import pytest

from tests.deviceplugin.conftest import World
from tests.vgpu.node.pids import is_running, wait_for_starts


@pytest.mark.parametrize("program", ["none", "state"])
async def test_the_plugin_serves_without_an_arbiter(
    idle_world: World, program: str, caplog: pytest.LogCaptureFixture
) -> None:
    idle_world.settings.arbiter = idle_world.directory / program
    idle_world.start_plugin()
    await idle_world.until_registered()
    await idle_world.run("p", gpus=1)
    assert caplog.text.count("containers of one card take no turns") == 1


async def test_the_plugin_ends_the_arbiter(idle_world: World) -> None:
    idle_world.start_plugin()
    await idle_world.until_registered()
    (pid,) = await wait_for_starts(idle_world.directory / "arbiter-pids")
    await idle_world.stop_plugin()
    assert not is_running(pid)


async def test_the_arbiter_can_be_switched_off(idle_world: World) -> None:
    idle_world.settings.turns = False
    idle_world.start_plugin()
    await idle_world.until_registered()
    assert not (idle_world.directory / "arbiter-pids").exists()
