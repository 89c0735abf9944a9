"""Threads of one process that fill a pool together stay within the limit, whichever thread makes the pool grow."""

import subprocess
from collections.abc import Callable

import pytest

from limiter.build import headers
from tests.limiter.conftest import Build, Container

LIMIT_MIB, ROUNDS = 256, 100


@pytest.fixture
def container(make_container: Callable[..., Container]) -> Container:
    return make_container(f"{LIMIT_MIB}MiB")


@pytest.mark.parametrize(("threads", "mib"), [(3, 12), (4, 20), (6, 12), (8, 3)])
def test_threads_never_hold_more_than_the_limit(container: Container, built: Build, threads: int, mib: int) -> None:
    """The last allocations do not fit into the pool's free memory, so that it grows without a thread expecting it."""
    driver = str(container.world.bin / "libcuda.so.1")
    program = built("race_pool.c", "-isystem", str(headers.folder()), driver, "-lpthread")
    command = [str(program), str(threads), str(mib), str(ROUNDS)]
    for _ in range(2):
        env = container.world.environment(**container.env, VGPU_LOG="off")
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=True, timeout=60)
        assert LIMIT_MIB - mib - 16 <= int(done.stdout) <= LIMIT_MIB
