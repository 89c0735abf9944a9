"""From PreStartContainer to a client of the group's server: device plugin, supervisor, limiter; on simulated cards."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

import limiter
from limiter import build
from simgpu import state_directory
from simgpu.build import ROOT
from simgpu.world import World, worlds
from tests import own_mounts
from tests.simgpu import mps_daemon
from tests.vgpu.node.builders import uuid
from vgpu.adapters import mps

# In mounts of its own: a supervisor, two members that start one after the other, and a container outside of space. Each
# has a process whose environment names the only directory for a daemon that is mounted into its container.
ROAD = """
import asyncio, json, os, subprocess, sys, time
from pathlib import Path
from tests.deviceplugin.plugin_parts import PluginParts, share
from tests.deviceplugin.space.test_members import ON_CARD, directories, member
from tests.vgpu.node.builders import slices, uuid
from vgpu.adapters.nvml.session import Nvml

state, programs, library = map(Path, sys.argv[1:])
command = [sys.executable, "-m", "deviceplugin.space", f"--state-dir={state}"]
supervisor = subprocess.Popen([*command, f"--control={programs}/nvidia-cuda-mps-control"])
parts, processes = PluginParts(state), []
parts.groups._clock, parts.groups._sleep = time.monotonic, asyncio.sleep

async def started(pod, ids):
    parts.pods.upsert(pod)
    allocated = parts.allocate(ids, pod)
    parts.set_holder(pod, ids)
    assert await parts.prove(ids) == "", parts.reported
    return allocated.id

def process(allocation, card):
    files = parts.files
    env = {
        **os.environ,
        "VGPU_LIMITS_FILE": str(files.limits(allocation)),
        "VGPU_REGION_FILE": str(files.region(allocation)),
        "VGPU_SPACE_DIRECTORY": str(files.space(allocation)),
        "CUDA_MPS_PIPE_DIRECTORY": str(files.space(allocation)),
        "CUDA_VISIBLE_DEVICES": uuid(card),
        "LD_PRELOAD": str(library),
    }
    running = subprocess.Popen([f"{programs}/gpuprobe", "--hold", "60", "alloc", "2"], env=env, stdout=subprocess.PIPE)
    processes.append(running)
    assert json.loads(running.stdout.readline())["result"] == 0

def clients():
    env = {**os.environ, "CUDA_MPS_PIPE_DIRECTORY": str(directories(parts).pipe(ON_CARD))}
    def tell(what):
        control = f"{programs}/nvidia-cuda-mps-control"
        return subprocess.run([control], input=what, env=env, capture_output=True, text=True, check=True).stdout.split()
    return [int(pid) for server in tell("get_server_list\\n") for pid in tell(f"get_client_list {server}\\n")]

try:
    first = asyncio.run(started(member("one"), slices(0, 0, 1, 2, 3)))
    second = asyncio.run(started(member("two"), slices(0, 4, 5, 6, 7)))
    outside = asyncio.run(started(share("outside", 10, gpus=1), slices(1, 0, 1, 2, 3)))
    for allocation, card in ((first, 0), (second, 0), (outside, 1)):
        process(allocation, card)
    seen = [running.pid in clients() for running in processes]
    with Nvml() as nvml:
        listed = nvml.mps_clients([uuid(0), uuid(1)])
    by_nvml = [running.pid in listed[uuid(card)] for running, card in zip(processes, (0, 0, 1), strict=True)]
    for running in processes:
        running.kill()
    parts.groups.keep([outside])
    deadline = time.monotonic() + 20
    while directories(parts).is_ready(ON_CARD) and time.monotonic() < deadline:
        time.sleep(0.05)
    print(json.dumps({"clients": seen, "by_nvml": by_nvml, "ready": directories(parts).is_ready(ON_CARD)}))
finally:
    for running in processes:
        running.kill()
    supervisor.terminate()
    supervisor.wait(20)
"""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    cards = tuple(replace(card, uuid=uuid(card.index)) for card in state_directory.make_cards(2))
    with worlds(tmp_path, "tests.cuda_calls.session") as make:
        made = make(cards)
        yield made
        mps_daemon.end_all(made)


@pytest.fixture
def state() -> Iterator[Path]:
    # Paths of pytest's folders are too long for sockets.
    with TemporaryDirectory(prefix="s") as folder:
        yield Path(folder)


def seen_in_own_mounts(world: World, state: Path) -> dict[str, Any]:
    """Run the script as root, in a mount namespace of its own, and return what it saw; `state` is a mount there."""
    script = (sys.executable, "-c", ROAD, str(state), str(world.bin), str(limiter.library_path()))
    done = subprocess.run(
        own_mounts.command(own_mounts.SHARED, state, script),
        env=world.environment(PYTHONPATH=str(ROOT)),
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        timeout=50,
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.mark.heavy
def test_members_are_clients_of_the_server_that_their_start_brought_up_and_nobody_else_is(
    world: World, state: Path
) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    build.ensure()
    assert (world.bin / mps.CONTROL).exists()
    are_clients = [True, True, False]
    assert seen_in_own_mounts(world, state) == {"clients": are_clients, "by_nvml": are_clients, "ready": False}
