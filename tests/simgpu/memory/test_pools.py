"""Memory pools: what they reserve of a card, and when they release it."""

import pytest

from simgpu.session import ProbeSession
from simgpu.world import World

MIB = 1 << 20
OUT_OF_MEMORY, INVALID_VALUE, NOT_SUPPORTED = 2, 1, 801
MARKS = "[pools.read({}, mark) // 2**20 for mark in (pools.RESERVED, pools.RESERVED_HIGH, pools.USED, pools.USED_HIGH)]"


def test_a_pool_reserves_in_blocks_and_remembers_its_highest(world: World, session: ProbeSession) -> None:
    pool = session("pools.create()[1]")
    first, second = (session(f"pools.alloc({size * MIB}, {pool})")[1] for size in (20, 30))
    assert session(MARKS.format(pool)) == [64, 64, 50, 50]
    assert session(f"free({second}, 'cuMemFreeAsync')") == 0
    assert session(MARKS.format(pool)) == [64, 64, 20, 50]
    session("cuda.cuCtxSynchronize()")
    assert session(MARKS.format(pool)) == [32, 64, 20, 50]
    assert world.mib_used() == 32
    assert session(f"[pools.write({pool}, mark, 0) for mark in (pools.RESERVED_HIGH, pools.USED_HIGH)]") == [0, 0]
    assert session(MARKS.format(pool)) == [32, 32, 20, 20]
    assert session(f"free({first}, 'cuMemFreeAsync')") == 0


@pytest.mark.parametrize("attribute", ["RESERVED", "USED", "RESERVED_HIGH", "USED_HIGH"])
def test_a_current_value_or_peak_cannot_be_set(session: ProbeSession, attribute: str) -> None:
    assert session(f"pools.write(pools.create()[1], pools.{attribute}, 7)") == INVALID_VALUE


@pytest.mark.parametrize("what", ["context", "stream", "event"])
def test_what_exceeds_the_threshold_goes_at_a_synchronisation(world: World, session: ProbeSession, what: str) -> None:
    pool = session("pools.of_device()")
    assert session(f"pools.write({pool}, pools.THRESHOLD, {50 * MIB})") == 0
    pointer = session(f"alloc({200 * MIB}, 'cuMemAllocAsync')")[1]
    event = session("made('cuEventCreate', 0)")[1]
    session(f"cuda.cuEventRecord(ctypes.c_void_p({event}), None)")
    assert session(f"free({pointer}, 'cuMemFreeAsync')") == 0
    assert world.mib_used() == 224
    wait = {
        "context": "cuda.cuCtxSynchronize()",
        "stream": "cuda.cuStreamSynchronize(None)",
        "event": f"cuda.cuEventSynchronize(ctypes.c_void_p({event}))",
    }
    assert session(wait[what]) == 0
    assert world.mib_used() == 64


def test_a_pool_is_trimmed_to_what_is_asked_and_used(world: World, session: ProbeSession) -> None:
    pool = session("pools.create()[1]")
    pointers = session(f"[pools.alloc({32 * MIB}, {pool})[1] for _ in range(4)]")
    session(f"[free(pointer, 'cuMemFreeAsync') for pointer in {pointers[1:]}]")
    for keep, left in ((100 * MIB, 128), (96 * MIB, 96), (33 * MIB, 64), (0, 32)):
        assert session(f"pools.trim({pool}, {keep})") == 0
        assert world.mib_used() == left


def test_a_destroyed_pool_goes_with_its_last_allocation(world: World, session: ProbeSession) -> None:
    pool = session("pools.create()[1]")
    pointer = session(f"pools.alloc({20 * MIB}, {pool})")[1]
    assert session(f"pools.destroy({pool})") == 0
    assert world.mib_used() == 32
    assert session(f"free({pointer}, 'cuMemFreeAsync')") == 0
    assert world.mib_used() == 0


def test_the_devices_pool_can_be_changed_and_its_default_stays(session: ProbeSession) -> None:
    mine = session("pools.create()[1]")
    default = session("pools.of_device('cuDeviceGetDefaultMemPool')")
    assert session("pools.of_device()") == default
    assert session(f"cuda.cuDeviceSetMemPool(0, ctypes.c_void_p({mine}))") == 0
    session(f"alloc({MIB}, 'cuMemAllocAsync')")
    assert session("pools.of_device()") == mine
    assert session("pools.of_device('cuDeviceGetDefaultMemPool')") == default
    assert session(f"[pools.read(pool, pools.USED) for pool in ({mine}, {default})]") == [MIB, 0]
    other = session("pools.create(device=1)[1]")
    assert session(f"cuda.cuDeviceSetMemPool(0, ctypes.c_void_p({other}))") == INVALID_VALUE
    assert session(f"pools.destroy({default})") == INVALID_VALUE
    assert session(f"pools.destroy({mine})") == 0
    assert session("pools.of_device()") == default


def test_a_pool_may_have_a_limit_of_its_own(session: ProbeSession) -> None:
    pool = session(f"pools.create(most={64 * MIB})[1]")
    results = session(f"[pools.alloc({40 * MIB}, {pool})[0] for _ in range(2)]")
    assert results == [0, OUT_OF_MEMORY]


def test_a_pools_own_device_always_has_access(session: ProbeSession) -> None:
    pool = session("pools.create()[1]")
    accesses = f"[pools.access({pool}, device) for device in (0, 1)]"
    assert session(accesses) == [3, 0]
    assert session(f"pools.set_access({pool}, 1, 3)") == 0
    assert session(accesses) == [3, 3]
    assert session(f"pools.set_access({pool}, 0, 0)") == INVALID_VALUE
    assert session(f"pools.set_access({pool}, 9, 3)") == 101


def test_a_managed_pool_takes_nothing_of_the_card(world: World, session: ProbeSession) -> None:
    """As managed memory: a card is charged when a kernel touches it, and no simulated kernel does."""
    result, pool = session("pools.create(kind=pools.MANAGED)")
    pointer = session(f"pools.alloc({100 * MIB}, {pool})")[1]
    assert (result, world.mib_used()) == (0, 0)
    assert session(MARKS.format(pool)) == [128, 128, 100, 100]
    assert session(f"free({pointer}, 'cuMemFreeAsync')") == 0
    session("cuda.cuCtxSynchronize()")
    assert (session(MARKS.format(pool))[0], world.mib_used()) == (0, 0)


def test_a_managed_pool_cannot_be_exported(session: ProbeSession) -> None:
    assert session("pools.create(kind=pools.MANAGED, handle_types=pools.POSIX_FD)[0]") == NOT_SUPPORTED
