"""Stream-ordered memory is charged by the bytes that its pool has reserved, with NVML and without it."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from simgpu import state_directory, usage
from simgpu.session import ProbeSession
from simgpu.world import World
from tests.limiter.conftest import MIB, Container

OUT_OF_MEMORY = 2
STEP = 32
POOL = "globals().update(pool=U64()) or cuda.cuMemPoolCreate(ctypes.byref(pool), ON_CARD)"
FROM_POOL = "made('cuMemAllocFromPoolAsync', ctypes.c_size_t({size}), pool, None)"


@pytest.fixture(params=[0, 20], ids=["counted", "measured"])
def container(
    request: pytest.FixtureRequest, make_world: Callable[..., World], make_container: Callable[..., Container]
) -> Container:
    """128 MiB and one context, of 0 MiB (then NVML is not trusted) or more."""
    cards = tuple(replace(card, context_mib=request.param) for card in state_directory.make_cards(2))
    return replace(make_container(f"{128 + request.param}MiB"), world=make_world(cards))


@pytest.fixture
def process(container: Container) -> ProbeSession:
    session = container.session()
    assert session("start()") == 0
    session("globals().update(ON_CARD=(1).to_bytes(4, 'little') + bytes(4) + (1).to_bytes(4, 'little') + bytes(76))")
    return session


def used(container: Container) -> int:
    """MiB charged without the context, after a check that NVML agrees for the card and for each process."""
    card = container.world.cards[0]
    assert container.used_mib() * MIB == usage.bytes_by_card(container.world.state).get(card.uuid, 0)
    return container.used_mib() - card.context_mib


def alloc(process: ProbeSession, mib: int) -> tuple[int, int]:
    result, pointer = process(f"alloc({mib * MIB}, 'cuMemAllocAsync')")
    return result, pointer


def test_a_pool_is_charged_by_its_steps(container: Container, process: ProbeSession) -> None:
    for mib, charged in ((1, 32), (30, 32), (2, 64), (32, 96)):
        assert alloc(process, mib)[0] == 0
        assert used(container) == charged
    assert alloc(process, 64) == (OUT_OF_MEMORY, 0)
    assert alloc(process, 31)[0] == 0
    assert used(container) == 96


def test_the_growth_of_a_pool_is_limited(container: Container, process: ProbeSession) -> None:
    assert alloc(process, 20)[0] == 0
    assert container.region().cards[0].limit_bytes == (128 + container.world.cards[0].context_mib) * MIB


def test_freed_memory_stays_in_the_pool_until_a_synchronisation(container: Container, process: ProbeSession) -> None:
    pointers = [alloc(process, mib)[1] for mib in (40, 40, 40)]
    for pointer in pointers:
        assert process(f"free({pointer}, 'cuMemFreeAsync')") == 0
    assert used(container) == 128
    assert process("cuda.cuCtxSynchronize()") == 0
    assert process("info()")[1] == 128 * MIB
    assert used(container) == 0


def test_memory_that_a_pool_has_released_causes_no_refusal(container: Container, process: ProbeSession) -> None:
    _, pointer = alloc(process, 128)
    assert process(f"[free({pointer}, 'cuMemFreeAsync'), cuda.cuCtxSynchronize()]") == [0, 0]
    assert process(f"alloc({128 * MIB})")[0] == 0
    assert used(container) == 128
    assert container.region().cards[0].refusals == 0


def test_idle_pool_memory_is_trimmed_before_a_refusal(container: Container, process: ProbeSession) -> None:
    """As the driver does on a full card, with any release threshold."""
    assert process("cuda.cuDeviceGetMemPool(ctypes.byref(globals().setdefault('pool', U64())), 0)") == 0
    assert process("cuda.cuMemPoolSetAttribute(pool, 4, ctypes.byref(U64(2**64 - 1)))") == 0
    _, pointer = alloc(process, 128)
    assert process(f"[free({pointer}, 'cuMemFreeAsync'), cuda.cuCtxSynchronize()]") == [0, 0]
    assert process("info()")[1] == 0
    assert process(f"alloc({128 * MIB})")[0] == 0
    assert used(container) == 128


def test_an_own_pool_is_charged_until_it_is_destroyed(container: Container, process: ProbeSession) -> None:
    assert process(POOL) == 0
    _, pointer = process(FROM_POOL.format(size=40 * MIB))
    alloc(process, 1)
    assert used(container) == 96
    assert process(FROM_POOL.format(size=64 * MIB))[0] == OUT_OF_MEMORY
    assert process(f"free({pointer}, 'cuMemFreeAsync')") == 0
    assert process("cuda.cuMemPoolTrimTo(pool, ctypes.c_size_t(0))") == 0
    assert used(container) == 32
    assert process("cuda.cuMemPoolDestroy(pool)") == 0
    assert used(container) == 32


def test_a_pool_made_the_current_one_is_charged(container: Container, process: ProbeSession) -> None:
    alloc(process, 1)
    assert process(POOL) == 0
    assert process("cuda.cuDeviceSetMemPool(0, pool)") == 0
    _, pointer = alloc(process, 1)
    assert used(container) == 64
    assert process(f"free({pointer}, 'cuMemFreeAsync')") == 0
    assert process("cuda.cuMemPoolDestroy(pool)") == 0
    assert used(container) == 32
    alloc(process, 30)
    assert used(container) == 32


def test_freed_pool_memory_is_reused_without_a_charge(container: Container, process: ProbeSession) -> None:
    """Frees are not counted: once the sum of allocations exceeds the reserved bytes, the driver is queried."""
    for _ in range(40):
        _, pointer = alloc(process, 3)
        assert process(f"free({pointer}, 'cuMemFreeAsync')") == 0
    assert used(container) == 32


AGAIN = """
def again(mib, times):
    for _ in range(times):
        result, pointer = alloc(mib << 20, 'cuMemAllocAsync')
        if result or free(pointer, 'cuMemFreeAsync'):
            return result
    return 0
"""


def test_the_growth_of_a_fragmented_pool_is_noticed(container: Container, process: ProbeSession) -> None:
    """The driver does not announce the growth, and is not queried between calls in quick succession."""
    process(f"exec({AGAIN!r}, globals())")
    assert process("again(20, 1000)") == 0
    assert used(container) == 32
    state_directory.inject_faults(container.world.state, ("pool_in_pieces", 1, 3))
    assert process("again(20, 1000)") == 0
    assert used(container) == 128
    state_directory.inject_faults(container.world.state, ("pool_in_pieces", 1, 1))
    assert process("again(20, 1000)") == OUT_OF_MEMORY
    assert process("cuda.cuCtxSynchronize()") == 0
    process("info()")
    assert used(container) == 0


@pytest.mark.parametrize(("threshold", "left"), [(0, 0), (40, 64), (64, 64), (2**44 - 1, 128)])
def test_free_memory_follows_the_release_threshold(
    container: Container, process: ProbeSession, threshold: int, left: int
) -> None:
    assert process(POOL) == 0
    assert process(f"cuda.cuMemPoolSetAttribute(pool, 4, ctypes.byref(U64({threshold} << 20)))") == 0
    for _ in range(2):
        _, pointer = process(FROM_POOL.format(size=128 * MIB))
        assert process("info()")[1] == 0
        assert process(f"[free({pointer}, 'cuMemFreeAsync'), cuda.cuCtxSynchronize()]") == [0, 0]
        assert process("info()")[1] == (128 - left) * MIB
        assert used(container) == left
    assert process("cuda.cuMemPoolSetAttribute(pool, 4, ctypes.byref(U64(0)))") == 0
    assert process("cuda.cuCtxSynchronize()") == 0
    assert process("info()")[1] == 128 * MIB
    assert used(container) == 0


def test_many_small_pieces_are_counted_once(container: Container, process: ProbeSession) -> None:
    counts = process("[alloc(1 << 20, 'cuMemAllocAsync')[0] for _ in range(200)]")
    assert counts == [0] * 128 + [OUT_OF_MEMORY] * 72
    assert used(container) == 128


def test_pools_of_several_processes_share_the_limit(container: Container, process: ProbeSession) -> None:
    other = container.session()
    if container.world.cards[0].context_mib:
        pytest.skip("two contexts take more than one")
    other("start()")
    _, pointer = alloc(process, 96)
    assert alloc(other, 64)[0] == OUT_OF_MEMORY
    assert alloc(other, 32)[0] == 0
    process(f"[free({pointer}, 'cuMemFreeAsync'), cuda.cuCtxSynchronize()]")
    process("info()")
    assert alloc(other, 96)[0] == 0
    assert used(container) == 128


def test_a_size_that_overflows_is_refused(container: Container, process: ProbeSession) -> None:
    assert process(f"alloc({2**64 - 1}, 'cuMemAllocAsync')")[0] == OUT_OF_MEMORY
    assert alloc(process, 128)[0] == 0
    assert used(container) == 128


CAPTURE = """
stream, graph = U64(), U64()
cuda.cuStreamCreate(ctypes.byref(stream), 1)
def begin(mode): return int(cuda.cuStreamBeginCapture_v2(stream, mode))
def end(): return int(cuda.cuStreamEndCapture(stream, ctypes.byref(graph)))
def take(size):
    pointer = U64()
    return int(cuda.cuMemAllocAsync(ctypes.byref(pointer), ctypes.c_size_t(size), stream)), pointer.value
def give(pointer): return int(cuda.cuMemFreeAsync(U64(pointer), stream))
"""


@pytest.mark.parametrize("mode", range(3))
def test_queries_of_the_limiter_do_not_invalidate_a_capture(
    container: Container, process: ProbeSession, mode: int
) -> None:
    """Captured allocations are neither charged nor refused: the graph reserves memory at its launch."""
    process(f"exec({CAPTURE!r}, globals())")
    alloc(process, 100)
    assert process(f"begin({mode})") == 0
    for size in (1 << 20, 60 << 20):
        result, pointer = process(f"take({size})")
        assert result == 0
        assert process("info()")[0] == 0
        assert alloc(process, 1)[0] == 0
        assert process(f"give({pointer})") == 0
    assert process("end()") == 0
    assert used(container) == 128
