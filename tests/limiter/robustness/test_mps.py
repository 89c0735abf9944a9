"""The limiter in clients of an MPS server: the memory limit holds, and nothing of it depends on the server's life."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from simgpu.session import ProbeSession
from simgpu.world import World
from tests.limiter.conftest import Container
from tests.simgpu import mps_daemon
from tests.simgpu.mps_daemon import MpsDaemon

pytestmark = pytest.mark.heavy

MIB = 1 << 20
OUT_OF_MEMORY, ILLEGAL_ADDRESS, RPC_FAILURE = 2, 700, 806
LIMIT_MIB = 64

MakeContainer = Callable[..., Container]


@pytest.fixture
def daemon(world: World, tmp_path: Path) -> Iterator[MpsDaemon]:
    yield MpsDaemon(world, tmp_path / "pipe")
    mps_daemon.end_all(world)


def client(container: Container, daemon: MpsDaemon) -> ProbeSession:
    """A process of the container with a context, which is a client."""
    session = container.session(**daemon.environment)
    assert session("start()") == 0
    assert session("device_attribute(133)") == 1
    return session


def await_use(container: Container, mib: int) -> None:
    """Wait until the region says that so much is used."""
    deadline = time.monotonic() + 5
    while container.used_mib() != mib:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_each_containers_memory_is_limited(make_container: MakeContainer, daemon: MpsDaemon) -> None:
    containers = [make_container(f"{LIMIT_MIB}MiB"), make_container(f"{LIMIT_MIB // 2}MiB")]
    clients = [client(container, daemon) for container in containers]
    assert len(daemon.clients()) == 2
    for session, mib in zip(clients, (LIMIT_MIB, LIMIT_MIB // 2), strict=True):
        assert session("info()")[2] == mib * MIB
        assert session(f"fill_card({8 * MIB})") == mib // 8
        assert session(f"alloc({MIB})")[0] == OUT_OF_MEMORY


def test_two_clients_of_one_container_share_its_limit(container: Container, daemon: MpsDaemon) -> None:
    one, other = client(container, daemon), client(container, daemon)
    assert one(f"alloc({48 * MIB})")[0] == 0
    assert other(f"alloc({32 * MIB})")[0] == OUT_OF_MEMORY
    one.kill()
    assert other(f"alloc({32 * MIB})")[0] == 0


def test_what_faulted_clients_held_is_free_once_they_have_ended(
    container: Container, make_container: MakeContainer, daemon: MpsDaemon
) -> None:
    faulty, neighbour = client(container, daemon), client(make_container(), daemon)
    assert faulty(f"alloc({32 * MIB})")[0] == 0
    assert faulty("kernels.launch(kernels.load('fault_10'))") == 0
    assert faulty("cuda.cuCtxSynchronize()") == ILLEGAL_ADDRESS
    assert neighbour(f"alloc({MIB})")[0] == ILLEGAL_ADDRESS
    assert neighbour("kernels.launch(kernels.load('spin_10'))") != 0
    faulty.kill()
    neighbour.kill()
    new = client(container, daemon)
    assert new(f"alloc({LIMIT_MIB * MIB})")[0] == 0
    await_use(container, LIMIT_MIB)


def test_a_program_gets_the_drivers_error_when_its_server_is_killed(container: Container, daemon: MpsDaemon) -> None:
    session = client(container, daemon)
    assert session(f"alloc({32 * MIB})")[0] == 0
    os.kill(daemon.server(), signal.SIGKILL)
    deadline = time.monotonic() + 5
    while session("cuda.cuCtxSynchronize()") == 0 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert session("cuda.cuCtxSynchronize()") == RPC_FAILURE
    assert session(f"alloc({MIB})")[0] == RPC_FAILURE
    session.kill()
    assert client(container, daemon)(f"alloc({LIMIT_MIB * MIB})")[0] == 0
