"""Several processes of one container share the limit, and dead processes are not charged."""

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from simgpu import usage
from simgpu.world import World
from tests.limiter.conftest import MIB, Container

pytestmark = pytest.mark.heavy

OUT_OF_MEMORY = 2

RACER = """
import ctypes, random, sys
cuda = ctypes.CDLL("libcuda.so.1")
context, pointer = ctypes.c_void_p(), ctypes.c_uint64()
cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), cuda.cuCtxSetCurrent(context)
chance, held = random.Random(sys.argv[1]), []
for _ in range(int(sys.argv[2])):
    if held and chance.random() < 0.5:
        assert cuda.cuMemFree_v2(held.pop(chance.randrange(len(held)))) == 0
    else:
        result = cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(chance.choice([1, 3, 20]) << 20))
        assert result in (0, 2), result
        if result == 0: held.append(ctypes.c_uint64(pointer.value))
for one in held:
    cuda.cuMemFree_v2(one)
"""


def start_racer(container: Container, seed: int, rounds: int) -> subprocess.Popen[str]:
    return container.world.start(
        sys.executable, "-S", "-c", RACER, str(seed), str(rounds), **container.env, VGPU_LOG="off"
    )


def test_processes_share_one_limit(container: Container) -> None:
    first, second = container.session(), container.session()
    first("start()"), second("start()")
    assert first(f"alloc({40 * MIB})")[0] == 0
    assert second(f"alloc({40 * MIB})")[0] == OUT_OF_MEMORY
    assert second("info()") == [0, 24 * MIB, 64 * MIB]
    assert second(f"alloc({24 * MIB})")[0] == 0
    assert {held for process in container.region().processes for _, held in process.used_bytes} == {40 * MIB, 24 * MIB}


def test_two_containers_have_separate_limits(container: Container, make_container: Callable[..., Container]) -> None:
    other = make_container("64MiB")
    first, second = container.session(), other.session()
    first("start()"), second("start()")
    assert first(f"alloc({64 * MIB})")[0] == second(f"alloc({64 * MIB})")[0] == 0


@pytest.mark.parametrize("wait", [True, False])
def test_memory_of_a_killed_process_is_released(container: Container, *, wait: bool) -> None:
    """Also while the killed process is a zombie."""
    first, second = container.session(), container.session()
    first("start()"), second("start()")
    first(f"alloc({64 * MIB})")
    first.process.kill()
    if wait:
        first.process.wait()
    else:
        os.waitid(os.P_PID, first.process.pid, os.WEXITED | os.WNOWAIT)
    assert second(f"alloc({64 * MIB})")[0] == 0
    assert container.region().reaped == 1


def test_a_forked_child_is_charged_nothing(container: Container) -> None:
    process = container.session()
    process("start()")
    process(f"alloc({60 * MIB})")
    child = process("fork_and_stay()")
    try:
        assert container.used_mib() == 60
        process.kill()
        assert container.probe("alloc", "64")[0]["result"] == 0
    finally:
        os.kill(child, 9)


def test_a_forked_child_that_uses_the_card_has_its_own_slot(container: Container) -> None:
    """The parent has only called NVML, or holds memory, which its child does not inherit."""
    process = container.session()
    process("nvml('nvmlInit') or memory()")
    assert process(f"in_fork('[start(), alloc({40 * MIB})[0], alloc({40 * MIB})[0]]')") == [0, 0, OUT_OF_MEMORY]
    process("start()")
    _, pointer = process(f"alloc({10 * MIB})")
    time.sleep(0.15)
    assert process("info()")[1] == 54 * MIB
    process(f"in_fork('free({pointer})')")
    assert container.used_mib() == 10


def test_free_memory_soon_excludes_dead_processes(container: Container) -> None:
    first, second = container.session(), container.session()
    first("start()"), second("start()")
    first(f"alloc({40 * MIB})")
    assert second("info()")[1] == 24 * MIB
    first.kill()
    time.sleep(0.15)
    assert second("info()")[1] == 64 * MIB


def test_an_exec_clears_the_charges_of_the_former_image(container: Container) -> None:
    process = container.session()
    process("start()")
    process(f"alloc({60 * MIB})")
    assert process.process.stdin is not None
    print("os.execv('/bin/sleep', ['sleep', '60'])", file=process.process.stdin, flush=True)
    deadline = time.monotonic() + 10
    while container.used_mib():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert process.process.poll() is None


def test_racing_processes_never_exceed_the_limit(container: Container, world: World) -> None:
    racers = [start_racer(container, seed, 400) for seed in range(6)]
    for racer in racers:
        assert racer.wait(50) == 0
    next_one = container.session()  # an ended process's charge may still have the rest of a chunk
    assert next_one("start()") == 0
    assert next_one("info()") == [0, 64 * MIB, 64 * MIB]
    card = container.region().cards[0]
    assert card.refusals > 0
    # A piece is charged once its address is known, so each process may exceed the limit by one chunk for a moment.
    assert card.peak_bytes <= (64 + 2 * len(racers)) * MIB
    assert usage.peak_bytes_by_card(world.state)[world.cards[0].uuid] <= (64 + 2 * len(racers)) * MIB


def test_after_kills_at_random_times_only_living_processes_are_charged(container: Container) -> None:
    chance = random.Random(7)
    survivor = container.session()
    survivor("start()")
    survivor(f"alloc({2 * MIB})")
    for round_number in range(12):
        racers = [start_racer(container, round_number * 10 + n, 1_000_000) for n in range(2)]
        time.sleep(0.1 + chance.random() * 0.1)
        for racer in racers:
            racer.kill()
            racer.wait()
    begun = time.monotonic()
    assert survivor(f"alloc({62 * MIB})")[0] == 0
    assert time.monotonic() - begun < 1
    assert container.used_mib() == 64


def test_a_descriptor_limit_or_a_closed_table_of_files_changes_nothing(container: Container) -> None:
    """A daemon closes all its descriptors: the region stays mapped, and no lock depends on a descriptor."""
    process = container.session()
    process("start()")
    process(f"alloc({40 * MIB})")
    process("os.closerange(3, 100)")
    assert container.session()("start()") == 0
    assert container.probe("alloc", "32")[0]["result"] == OUT_OF_MEMORY
    assert Path(f"/proc/{process.process.pid}").exists()
