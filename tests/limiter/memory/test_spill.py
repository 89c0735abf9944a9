"""An allocation within the limit on a full card is refused, or served from managed memory with the policy spill."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from simgpu import state_directory
from simgpu.session import ProbeSession
from simgpu.world import World
from tests.limiter.conftest import MIB, Container
from vgpu.domain.asks.policy import MemoryPolicy
from vgpu.domain.formats.limits import ANY_GPU, CardLimit, Limits
from vgpu.domain.formats.region import CardUse

OUT_OF_MEMORY = 2
CARD_MIB = 81920

Make = Callable[..., Container]
PITCHED = "made('cuMemAllocPitch_v2', ctypes.byref(pitch), ctypes.c_size_t(1000), ctypes.c_size_t(8192), 4)"


@pytest.fixture
def full(world: World) -> World:
    """The first card has 16 MiB left; a process of another container holds the rest."""
    world.hold(CARD_MIB - 16)
    return world


@pytest.fixture
def spilling(full: World, make_container: Make) -> Container:
    assert full.cards
    return make_container("64MiB", memory_policy="spill")


def started(container: Container) -> ProbeSession:
    session = container.session()
    session("globals().update(pitch=ctypes.c_size_t())")
    assert session("start()") == 0
    return session


def account(container: Container) -> CardUse:
    return container.region().cards[0]


def managed_mib(container: Container) -> int:
    return sum(amount for process in container.region().processes for _, amount in process.managed_bytes) // MIB


def test_by_default_a_full_card_refuses(full: World, make_container: Make) -> None:
    container = make_container("64MiB")
    assert [line["result"] for line in container.probe("alloc", "16", "2")] == [0, OUT_OF_MEMORY]
    assert full.cards
    assert account(container).spills == 0


def test_allocations_beyond_the_card_are_spilled_and_counted(spilling: Container) -> None:
    session = started(spilling)
    assert session(f"alloc({16 * MIB})")[0] == 0
    assert account(spilling).spills == 0
    result, pointer = session(f"alloc({20 * MIB})")
    assert result == 0
    assert session(f"fill({pointer}, {20 * MIB})") == 0
    assert (account(spilling).spills, account(spilling).spilled_bytes) == (1, 20 * MIB)
    assert (spilling.used_mib(), managed_mib(spilling)) == (36, 20)
    assert session("info()") == [0, 0, 64 * MIB]


def test_spilled_memory_is_freed_like_any_other(spilling: Container) -> None:
    session = started(spilling)
    pointers = [session(f"alloc({size})")[1] for size in (20 * MIB, 17 * MIB, 16 * MIB)]
    assert (spilling.used_mib(), managed_mib(spilling)) == (54, 38)
    for pointer in pointers:
        assert session(f"free({pointer})") == 0
    assert (spilling.used_mib(), managed_mib(spilling)) == (0, 0)
    assert account(spilling).spilled_bytes == 38 * MIB


def test_the_limit_holds(spilling: Container) -> None:
    session = started(spilling)
    assert [session(f"alloc({size * MIB})")[0] for size in (20, 40, 6, 4)] == [0, 0, OUT_OF_MEMORY, 0]
    assert account(spilling).peak_bytes == 64 * MIB
    assert session("alloc(4096)")[0] == OUT_OF_MEMORY  # known only when the driver has taken a chunk of 2 MiB for it
    assert account(spilling).refusals == 2


def test_small_allocations_are_spilled_by_the_byte(spilling: Container) -> None:
    session = started(spilling)
    session(f"alloc({16 * MIB})")
    assert [session("alloc(5000)")[0] for _ in range(3)] == [0, 0, 0]
    assert account(spilling).used_bytes == 16 * MIB + 3 * 8192


def test_a_spilled_pitched_allocation_keeps_its_pitch(spilling: Container) -> None:
    session = started(spilling)
    session(f"alloc({16 * MIB})")
    assert session(PITCHED)[0] == 0
    assert session("pitch.value") == 1024
    assert account(spilling).spilled_bytes == 8 * MIB


@pytest.mark.parametrize("kind", ["vmm", "array", "async"])
def test_memory_that_cannot_be_managed_is_refused(spilling: Container, kind: str) -> None:
    assert [line["result"] for line in spilling.probe("alloc", "--kind", kind, "40")] == [OUT_OF_MEMORY]
    assert (account(spilling).spills, spilling.used_mib()) == (0, 0)


def test_without_managed_memory_the_result_is_out_of_memory(spilling: Container) -> None:
    state_directory.inject_faults(spilling.world.state, ("cuMemAllocManaged", 801))
    assert [line["result"] for line in spilling.probe("alloc", "40", "12")] == [OUT_OF_MEMORY, 0]
    assert (account(spilling).spills, account(spilling).peak_bytes) == (0, 40 * MIB)


def test_without_a_limit_nothing_is_spilled(full: World, make_container: Make) -> None:
    container = make_container(None, cores=30, memory_policy="spill")
    assert [line["result"] for line in container.probe("alloc", "40")] == [OUT_OF_MEMORY]
    assert full.cards


def test_spilled_memory_of_a_dead_process_is_released(spilling: Container) -> None:
    session = started(spilling)
    assert session(f"alloc({60 * MIB})")[0] == 0
    session.kill()
    assert started(spilling)(f"alloc({60 * MIB})")[0] == 0
    assert (spilling.used_mib(), managed_mib(spilling)) == (60, 60)


def test_measurements_keep_the_charge_of_spilled_memory(full: World, make_container: Make) -> None:
    """NVML does not count spilled memory, so a measured context is added to its charge."""
    state_directory.write_cards(full.state, tuple(replace(card, context_mib=8) for card in full.cards))
    container = make_container("64MiB", memory_policy="spill")
    session = started(container)
    assert session(f"alloc({30 * MIB})")[0] == 0
    made = "cuda.cuCtxCreate_v2(ctypes.byref(ctypes.c_void_p()), 0, 0)"
    assert session(made) == 0
    assert (container.used_mib(), managed_mib(container)) == (46, 30)


def test_the_policy_changes_under_a_running_process(full: World, make_container: Make) -> None:
    container = make_container("64MiB")
    session = started(container)
    assert session(f"alloc({40 * MIB})")[0] == OUT_OF_MEMORY
    container.limit(Limits((CardLimit(ANY_GPU, 64 * MIB),), memory_policy=MemoryPolicy.SPILL))
    assert session(f"alloc({40 * MIB})")[0] == 0
    container.limit(Limits((CardLimit(ANY_GPU, 64 * MIB),)))
    assert session(f"alloc({20 * MIB})")[0] == OUT_OF_MEMORY
    assert full.cards


def test_the_environment_alone_is_enough(full: World, shim: object) -> None:
    env = {"LD_PRELOAD": str(shim), "VGPU_MEMORY_LIMIT": "64MiB", "VGPU_MEMORY_POLICY": "spill"}
    assert [line["result"] for line in full.probe("alloc", "40", "40", **env)] == [0, OUT_OF_MEMORY]
