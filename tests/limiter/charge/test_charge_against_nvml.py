"""When no call is open, the charge equals NVML's figure plus managed memory, after any calls."""

import random
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from simgpu import state_directory, usage
from simgpu.session import ProbeSession
from simgpu.world import World
from tests.limiter.conftest import MIB, Container

pytestmark = pytest.mark.slow

LIMIT = 512
PROCESSES, THREADS = 2, 4  # that race each other
POOL_STEP = 32 * MIB
QUIET_S = 0.1  # longer than the longest interval between measurements

WORKER = """
import random, threading
held = {kind: [] for kind in ("cuMemAlloc_v2", "cuMemAllocManaged", "cuMemAllocAsync", "module", "context")}
def take(kind, size):
    if kind == "module": result, made_ = made("cuModuleLoadData", b"")
    elif kind == "context": result, made_ = made("cuCtxCreate_v2", 0, 0)
    else: result, made_ = alloc(size, kind)
    assert result in (0, 2), (kind, result)
    if result == 0: held[kind].append(made_)
    return result
def give(kind):
    if not held[kind]: return 0
    last = kind == "context"  # only the current context is destroyed, so that no destroyed one stays current
    one = held[kind].pop(-1 if last else random.randrange(len(held[kind])))
    if kind == "module": return cuda.cuModuleUnload(U64(one))
    if kind == "context": return cuda.cuCtxDestroy_v2(U64(one))
    return free(one, "cuMemFreeAsync" if "Async" in kind else "cuMemFree_v2")
def run(seed, rounds, allocate):
    start()
    mine, chance = [], random.Random(seed)
    for _ in range(rounds):
        kind = chance.choice([*allocate, "view", "free", "free", "sync"])
        if kind == "view": info()
        elif kind == "sync": cuda.cuCtxSynchronize()
        elif kind == "free" and mine:
            one, how = mine.pop(chance.randrange(len(mine)))
            assert free(one, how) == 0
        elif kind != "free":
            result, one = alloc(chance.choice([1, 4096, 3 << 20, 40 << 20]), kind)
            if result == 0: mine.append((one, "cuMemFreeAsync" if "Async" in kind else "cuMemFree_v2"))
    for one, how in mine: assert free(one, how) == 0
def run_all(count, rounds, allocate):
    threads = [threading.Thread(target=run, args=(seed, rounds, allocate)) for seed in range(count)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
"""


@pytest.fixture
def container(make_world: Callable[..., World], make_container: Callable[..., Container]) -> Container:
    cards = tuple(replace(card, context_mib=20, module_kib=4096) for card in state_directory.make_cards(1))
    return replace(make_container(f"{LIMIT}MiB"), world=make_world(cards))


def start(container: Container) -> ProbeSession:
    process = container.session()
    assert process("start()") == 0
    process(f"exec({WORKER!r}, globals())")
    return process


@pytest.fixture
def watcher(container: Container) -> ProbeSession:
    """A process without limits, which sees NVML's own figures."""
    outside = container.world.session()
    outside("nvml('nvmlInit')")
    return outside


def check(container: Container, watcher: ProbeSession, *processes: ProbeSession) -> None:
    time.sleep(QUIET_S)
    for process in processes:
        process("info()")
    charged = {process.pid: process for process in container.region().processes}
    held = dict(watcher("processes()"))
    for process in processes:
        use = charged[process.process.pid]
        managed = sum(size for _, size in use.managed_bytes)
        assert sum(size for _, size in use.used_bytes) - managed == held.get(process.process.pid, 0)
    assert container.region().cards[0].used_bytes == sum(size for use in charged.values() for _, size in use.used_bytes)


@pytest.mark.parametrize("seed", range(3))
def test_charges_equal_nvml_after_random_calls(container: Container, watcher: ProbeSession, seed: int) -> None:
    chance = random.Random(seed)
    processes = [start(container) for _ in range(2)]
    for _ in range(12):
        for _ in range(8):
            process = chance.choice(processes)
            kind = chance.choice(["cuMemAlloc_v2", "cuMemAllocManaged", "cuMemAllocAsync", "module", "context"])
            if chance.random() < 0.6:
                process(f"take('{kind}', {chance.choice([1, 5000, MIB, 3 * MIB, 40 * MIB, 100 * MIB])})")
            else:
                process(f"give('{kind}')")  # errors of the driver are ignored: a context takes its memory with it
            if chance.random() < 0.2:
                assert process("cuda.cuCtxSynchronize()") == 0
        check(container, watcher, *processes)


def race_each(container: Container, watcher: ProbeSession, *allocate: str) -> int:
    """Runs threads of two processes at once; returns how far the card's peak was above the limit, in bytes."""
    processes = [start(container) for _ in range(PROCESSES)]
    for process in processes:
        process.tell(f"run_all({THREADS}, 150, {allocate})")
    assert [process.answer() for process in processes] == [None] * PROCESSES
    for process in processes:
        process("cuda.cuCtxSynchronize()")
    check(container, watcher, *processes)
    assert container.used_mib() == 40
    return usage.peak_bytes_by_card(container.world.state)[container.world.cards[0].uuid] - LIMIT * MIB


def test_charges_equal_nvml_after_racing_for_linear_memory(container: Container, watcher: ProbeSession) -> None:
    assert race_each(container, watcher, "cuMemAlloc_v2") <= 0


def test_charges_equal_nvml_after_racing_for_pool_memory(container: Container, watcher: ProbeSession) -> None:
    """Racing threads may take a process over the limit by one step of its pool for each thread.

    Before the call, `missing_bytes` (hooks/pools/pool_growth.c) compares the allocation with the pool's free memory and
    reserves nothing if it fits. It does not see what other threads are about to take. If T threads find the same free
    memory, all but one may grow the pool without a reservation, by 40 MiB each: (T - 1) * 40 MiB, in whole steps T *
    32 MiB for T = 4. After the call, `pool_growth_fits` sees the growth and refuses the allocation.
    """
    excess = race_each(container, watcher, "cuMemAlloc_v2", "cuMemAllocAsync")
    assert excess <= PROCESSES * THREADS * POOL_STEP
