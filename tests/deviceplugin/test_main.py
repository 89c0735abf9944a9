"""The program as it is started, over the simulated driver."""

import asyncio
import dataclasses
import json
import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from deviceplugin.serving.process import STEADY_S
from simgpu import build, state_directory
from tests.deviceplugin.conftest import World, settings_of
from tests.vgpu.node.builders import NODE, uuid
from vgpu.domain import names
from vgpu.domain.quantity import MIB

pytestmark = pytest.mark.heavy

VERSION = "580.95.05"  # of the simulated driver
BUSY_S = 2.0  # by which the relaying process may note a registration late, on a busy machine

Start = Callable[..., Awaitable[asyncio.subprocess.Process]]


@pytest.fixture
async def start(idle_world: World) -> AsyncIterator[Start]:
    driver, cards = build.ensure(), idle_world.directory / "simgpu"
    state_directory.write_cards(cards, state_directory.make_cards(2, memory_mib=2048))
    started = []

    async def start(*flags: str, within: tuple[str, ...] = ()) -> asyncio.subprocess.Process:
        known = {
            "kubeconfig": idle_world.directory / "kubeconfig",
            "kubelet-dir": idle_world.settings.kubelet_dir,
            "state-dir": idle_world.state,
            "library": idle_world.directory / "libvgpushare.so",
            "region-tmpfs": False,
        }
        environment = {
            **os.environ,
            "NODE_NAME": NODE,
            "LD_LIBRARY_PATH": str(driver),
            "SIMGPU_STATE": str(cards),
            "PYTHONPATH": str(Path(__file__).parents[2]),
        }
        arguments = [f"--{name}={value}" for name, value in known.items()]
        started.append(
            await asyncio.create_subprocess_exec(
                *within,
                sys.executable,
                "-m",
                "deviceplugin",
                *arguments,
                *flags,
                env=environment,
                stderr=asyncio.subprocess.PIPE,
            )
        )
        return started[-1]

    yield start
    for process in started:
        if process.returncode is None:
            process.kill()
        _, stderr = await process.communicate()
        sys.stderr.write(stderr.decode(errors="replace"))  # pytest shows it with a test that failed


async def test_a_second_copy_waits_and_takes_over(idle_world: World, start: Start) -> None:
    first = await start()
    await idle_world.until_registered(within_s=40)
    second = await start()
    await asyncio.sleep(1.5)
    assert len(idle_world.kubelet.registrations) == 2
    first.send_signal(signal.SIGTERM)
    assert await asyncio.wait_for(first.wait(), 10) == 0
    await idle_world.until(lambda: len(idle_world.kubelet.registrations) == 4, within_s=40)
    await idle_world.until_registered()
    assert second.returncode is None


async def test_a_stopped_plugin_releases_its_lease(idle_world: World, start: Start) -> None:
    async def holder_is(name: str) -> bool:
        record = await idle_world.lease()
        return record is not None and record.holder == name

    process = await start()
    await idle_world.until(lambda: holder_is(NODE), within_s=40)
    process.send_signal(signal.SIGTERM)
    assert await asyncio.wait_for(process.wait(), 10) == 0
    assert await holder_is("")
    _, stderr = await process.communicate()
    assert b"Traceback" not in stderr


async def test_no_pod_fails_while_the_serving_process_is_killed(idle_world: World, start: Start) -> None:
    """The kubelet keeps its streams, and its calls wait until the next process serves."""
    cards = state_directory.make_cards(2, memory_mib=2048)
    known = [dataclasses.replace(card, uuid=uuid(n)) for n, card in enumerate(cards)]
    state_directory.write_cards(idle_world.directory / "simgpu", known)
    first = await start()
    await idle_world.until_registered(within_s=40)
    before = await idle_world.run("before")
    await asyncio.sleep(STEADY_S + BUSY_S)
    pods = [await idle_world.create(f"p{n}", gpus=n) for n in range(2)]
    os.kill(_child(first.pid), signal.SIGKILL)
    for pod in pods:
        async with asyncio.timeout(20):
            await idle_world.kubelet.admit(pod)
        await idle_world.kubelet.start_container(pod)
    await idle_world.kubelet.start_container(before)
    assert {idle_world.limits(pod).cards[0].memory_bytes for pod in (before, *pods)} == {1024 * MIB}
    assert sorted(idle_world.kubelet.registrations) == [names.CARD, names.SLICE]
    first.send_signal(signal.SIGTERM)
    assert await asyncio.wait_for(first.wait(), 10) == 0


async def test_when_the_first_process_is_killed_the_lease_is_released_and_another_copy_takes_over(
    idle_world: World, start: Start
) -> None:
    async def is_held() -> bool:
        record = await idle_world.lease()
        return record is not None and bool(record.holder)

    async def is_released() -> bool:
        return not await is_held()

    first = await start()
    await idle_world.until_registered(within_s=40)
    await idle_world.until(is_held, within_s=40)  # the Lease follows the kubelet's streams
    serving = _child(first.pid)
    first.kill()
    await idle_world.until(is_released, within_s=40)
    await idle_world.until(lambda: not Path(f"/proc/{serving}").exists(), within_s=40)
    await start()
    await idle_world.until(lambda: len(idle_world.kubelet.registrations) == 4, within_s=40)


def _child(pid: int) -> int:
    """The process that serves, which the first one has started."""
    (child,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(child)


@pytest.mark.parametrize(
    ("flag", "status", "words"),
    [("--slice-mib=x", 2, b"slice_mib"), ("--library=/none", 1, b"/none"), ("--kubeconfig=/none", 1, b"/none")],
)
async def test_a_failed_start_names_its_cause(start: Start, flag: str, status: int, words: bytes) -> None:
    process = await start(flag)
    _, stderr = await asyncio.wait_for(process.communicate(), 20)
    assert process.returncode == status
    assert words in stderr
    assert b"Traceback" not in stderr


async def test_cards_that_answer_are_offered_while_another_fails(idle_world: World, start: Start) -> None:
    broken, works = state_directory.make_cards(2, memory_mib=2048)
    state_directory.inject_faults(idle_world.directory / "simgpu", (f"*@{broken.uuid}", 999))
    await start("--health-period=0.1")
    await idle_world.until_registered(within_s=40)
    clients = idle_world.kubelet.clients
    assert clients[names.CARD].healthy == {works.uuid}
    state_directory.inject_faults(idle_world.directory / "simgpu")
    await idle_world.until(lambda: clients[names.CARD].healthy == {broken.uuid, works.uuid})


async def test_without_the_toolkit_the_driver_comes_from_the_nodes_root(idle_world: World, start: Start) -> None:
    """Without the node's root the process finds no NVML; the specification exists before the plugin registers."""
    root, specification = idle_world.directory / "host", idle_world.directory / "cdi" / "vgpu.io-gpu.json"
    folder = root / "usr/lib64"
    folder.mkdir(parents=True)
    for name in ("libcuda.so", "libnvidia-ml.so"):
        shutil.copy(build.ensure() / f"{name}.1", folder / f"{name}.{VERSION}")
    kind = f"--cdi-dir={specification.parent}", "--device-list=cdi", "--cdi-kind=vgpu.io/gpu"
    await start(*kind, f"--driver-root={root}", within=("env", "-u", "LD_LIBRARY_PATH"))
    await idle_world.until(lambda: bool(idle_world.kubelet.registrations), within_s=60)
    written = json.loads(specification.read_text())
    assert {device["name"] for device in written["devices"]} == {
        card.uuid for card in state_directory.make_cards(2, memory_mib=2048)
    }
    assert [mount["hostPath"] for mount in written["containerEdits"]["mounts"]][:2] == [
        f"/usr/lib64/libcuda.so.{VERSION}"
    ] * 2


async def test_a_plugin_whose_driver_was_replaced_ends_so_that_it_is_restarted(idle_world: World, start: Start) -> None:
    """The container's libnvidia-ml is that of the former driver until the container is restarted."""
    process = await start("--health-period=0.1")
    await idle_world.until_registered(within_s=40)
    state_directory.inject_faults(idle_world.directory / "simgpu", ("nvmlInit_v2", 18))
    state_directory.reload_driver(idle_world.directory / "simgpu")
    _, stderr = await asyncio.wait_for(process.communicate(), 20)
    assert process.returncode == 1
    assert b"deviceplugin: " in stderr.splitlines()[-1]
    assert b"Traceback" not in stderr


async def test_slices_too_small_for_the_kubelet_are_refused_by_name(idle_world: World, start: Start) -> None:
    cards = state_directory.make_cards(8, memory_mib=143155)
    state_directory.write_cards(idle_world.directory / "simgpu", cards)
    process = await start("--slice-mib=1")
    _, stderr = await asyncio.wait_for(process.communicate(), 20)
    assert process.returncode == 1
    assert b"--slice-mib 1 is too small" in stderr.splitlines()[-1]
    assert not idle_world.kubelet.registrations


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can unshare mounts")
async def test_without_mount_propagation_the_plugin_says_what_to_do_and_waits(idle_world: World, start: Start) -> None:
    within = ("unshare", "--mount", "--propagation", "private")
    process = await start("--region-tmpfs=true", within=within)
    assert process.stderr is not None
    async with asyncio.timeout(20):
        while b"mountPropagation: Bidirectional" not in await process.stderr.readline():
            pass
    await asyncio.sleep(0.3)
    assert process.returncode is None
    assert not idle_world.kubelet.registrations


def test_the_packaged_library_is_the_default() -> None:
    settings = settings_of(node_name="n")
    assert settings.library_path().parts[-2:] == ("limiter", "libvgpushare.so")
