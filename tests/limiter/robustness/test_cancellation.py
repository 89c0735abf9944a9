"""Threads that pthread_cancel() ends inside CUDA calls, and a wall clock that is set back, block no other call."""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.limiter.conftest import Build, Container
from tests.limiter.fake_arbiter import MS, Arbiter

pytestmark = pytest.mark.slow

ROUNDS = 10
HANG_S = 30
SHALLOW_NS = MS // 5  # so that launches wait for room in their turn

Make = Callable[..., Container]


@contextmanager
def arbiter_at(path: Path | None) -> Iterator[None]:
    arbiter = Arbiter(path, depth_ns=SHALLOW_NS) if path else None
    yield
    if arbiter:
        arbiter.close()


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("cores", "has_arbiter"), [(None, False), (10, False), (None, True), (30, True)])
def test_cancelled_threads_block_no_other_thread(
    make_container: Make, built: Build, tmp_path: Path, *, cores: int | None, has_arbiter: bool, seed: int
) -> None:
    container, socket = make_container("64MiB", cores), tmp_path / "socket"
    program = built("robustness/cancelled.c", "-lpthread")
    env = container.world.environment(**{**container.env, "VGPU_ARBITER_SOCKET": str(socket)})
    with arbiter_at(socket if has_arbiter else None):
        command = [str(program), str(ROUNDS), str(seed)]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=HANG_S)
    assert (done.returncode, done.stdout) == (0, "launch 0, allocation 0\n")
    assert container.used_mib() == 0


def test_launches_go_on_while_the_wall_clock_is_set_back(container: Container, built: Build, tmp_path: Path) -> None:
    """Launches that wait for room in their turn wait with a timeout."""
    socket = tmp_path / "socket"
    clock = built("robustness/clock_set_back.c", "-shared", "-fPIC")
    more = {"LD_PRELOAD": f"{clock}:{container.env['LD_PRELOAD']}", "VGPU_ARBITER_SOCKET": str(socket)}
    with arbiter_at(socket):
        session = container.session(**more)
        assert session("start()") == 0
        assert len(session("launches.feed_in_threads(500, 1.0, 4)")) == 4
    assert container.region().cards[0].delayed_launches > 0
