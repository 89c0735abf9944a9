"""The MPS server of a group, whose time NVML has for its members, as the device plugin tells of it."""

import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deviceplugin.conftest import World, settings_of
from tests.deviceplugin.metrics.test_metrics import has, scraped, served
from tests.deviceplugin.test_uninvited import ID, assert_nothing_else_is_found, use, with_status
from tests.strategies import container
from tests.vgpu.node.builders import uuid
from vgpu.adapters.nvml.records import BusySamples
from vgpu.domain.json_types import JsonObject
from vgpu.node.space.directories import GroupOnCard, SpaceDirectories

__all__ = ["served"]  # a fixture

OF = GroupOnCard(uuid(0), "0123456789abcdef")


@pytest.fixture
def directories(idle_world: World) -> Iterator[SpaceDirectories]:
    """The plugin's state directory has a short path, because the paths of sockets below it are bounded."""
    with tempfile.TemporaryDirectory(prefix="", dir="/tmp") as folder:
        idle_world.settings = settings_of(**{**idle_world.settings.model_dump(), "state_dir": Path(folder)})
        yield SpaceDirectories(Path(folder) / "space")


@pytest.fixture
def server(idle_world: World, directories: SpaceDirectories) -> Iterator[int]:
    """The pid of a process that is the server of a group on the first card."""
    pipe = directories.pipe(OF)
    command = ["bash", "-c", "exec -a nvidia-cuda-mps-server sleep 60"]
    with subprocess.Popen(command, env={"PATH": "/usr/bin:/bin", "CUDA_MPS_PIPE_DIRECTORY": str(pipe)}) as process:
        use(idle_world, 0, pid=process.pid, command="nvidia-cuda-mps")
        yield process.pid
        process.kill()


async def member(world: World, directories: SpaceDirectories, name: str, pid: int) -> JsonObject:
    """A running pod whose container is a member of the group, with a client."""
    pod = await world.run(name, container("main", gpu_mem=512))
    allocation = world.kubelet.mount(pod, "/run/vgpu/limits").parent.name
    directories.add_member(OF, allocation)
    running = await with_status(world, name, main=ID if name == "a" else ID[::-1])
    use(world, 0, running, pid=pid, container=ID if name == "a" else ID[::-1])
    return running


def seconds_of(text: str, series: str) -> list[float]:
    return [float(line.split()[-1]) for line in text.split("\n") if line.startswith(series)]


@pytest.mark.heavy
async def test_members_have_their_servers_time_and_others_have_none(
    idle_world: World, directories: SpaceDirectories, server: int, served: str
) -> None:
    for pid, name in ((4711, "a"), (4712, "b")):
        await member(idle_world, directories, name, pid)
    await idle_world.until(lambda: has(served, 'vgpu_container_processes{container="main"', 'pod="a"', 'pod="b"'))
    ended_us = int((time.time() + 5) * 1e6)
    idle_world.driver.samples[uuid(0)] = BusySamples((), ((server, ended_us, 0.8),))

    async def is_counted() -> bool:
        found = seconds_of(await scraped(served), "vgpu_container_gpu_seconds_total{")
        return len(found) == 2 and min(found) > 0

    await idle_world.until(is_counted)
    text = await scraped(served)
    first, second = seconds_of(text, "vgpu_container_gpu_seconds_total{")
    assert first == pytest.approx(second)
    assert sum(seconds_of(text, "vgpu_card_others_seconds_total{")) == 0


@pytest.mark.usefixtures("server", "served")
async def test_a_groups_server_is_no_uninvited_process(idle_world: World) -> None:
    assert [process.command for process in idle_world.processes.values()] == ["nvidia-cuda-mps"]
    await assert_nothing_else_is_found(idle_world)
