"""Threads of one process that fill a pool together stay within the limit, whichever thread makes the pool grow."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import simgpu.build
from limiter.build import headers
from tests.limiter.conftest import UNHOOKED, Build, Container, compile_as_limiter

HERE = Path(__file__).parent
LIMIT_MIB, ROUNDS = 256, 100


@pytest.fixture
def container(make_container: Callable[..., Container]) -> Container:
    return make_container(f"{LIMIT_MIB}MiB")


def race(container: Container, program: Path, threads: int, mib: int, **more: str) -> int:
    """Return the most MiB that the threads held together in a round."""
    env = container.world.environment(**{**container.env, "VGPU_LOG": "off", **more})
    command = [str(program), str(threads), str(mib), str(ROUNDS)]
    return int(subprocess.run(command, env=env, capture_output=True, text=True, check=True, timeout=60).stdout)


@pytest.mark.heavy
@pytest.mark.parametrize(("threads", "mib"), [(3, 12), (4, 20), (6, 12), (8, 3)])
def test_threads_never_hold_more_than_the_limit(container: Container, built: Build, threads: int, mib: int) -> None:
    """The last allocations do not fit into the pool's free memory, so that it grows without a thread expecting it."""
    driver = str(container.world.bin / "libcuda.so.1")
    program = built("pools/race_pool.c", "-isystem", str(headers.folder()), driver, "-lpthread")
    for _ in range(2):
        assert LIMIT_MIB - mib - 16 <= race(container, program, threads, mib) <= LIMIT_MIB


@pytest.fixture(scope="session")
def slow_growth(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The race with the limiter's sources linked in, of which one pauses at the worst moment."""
    program = tmp_path_factory.mktemp("slow_growth") / "race_pool"
    others = [path for path in UNHOOKED if path.name != "pool_growth.c"]
    sources = [HERE / "race_pool.c", HERE / "slow_pool_growth.c", *others]
    driver = simgpu.build.ensure() / "libcuda.so.1"  # for what the limiter does not replace
    compile_as_limiter(program, *map(str, (*sources, driver)))
    return program


@pytest.mark.slow
@pytest.mark.parametrize(("threads", "mib"), [(3, 12), (4, 20), (6, 12), (8, 3)])
def test_a_pool_that_grows_behind_the_look_for_room_stays_within_the_limit(
    container: Container, slow_growth: Path, threads: int, mib: int
) -> None:
    assert LIMIT_MIB - mib - 16 <= race(container, slow_growth, threads, mib, LD_PRELOAD="") <= LIMIT_MIB
