"""What cuCtxSetLimit promises to device code is charged when it is set, and the heap only once."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from simgpu import state_directory
from simgpu.session import ProbeSession
from simgpu.world import World
from tests.limiter.conftest import MIB, Container

pytestmark = pytest.mark.heavy


INVALID_VALUE, OUT_OF_MEMORY, UNSUPPORTED_LIMIT = 1, 2, 215
GIB = 1 << 30
CONTEXT_MIB = 500
ROOM_MIB = 2048 - CONTEXT_MIB
HEAP, PENDING = "kernels.HEAP_SIZE", "kernels.PENDING_LAUNCHES"


@pytest.fixture
def container(make_world: Callable[..., World], make_container: Callable[..., Container]) -> Container:
    """A limit of 2 GiB on a card whose contexts take 500 MiB."""
    cards = tuple(replace(card, context_mib=CONTEXT_MIB) for card in state_directory.make_cards(1))
    return replace(make_container("2GiB"), world=make_world(cards))


@pytest.fixture
def process(container: Container) -> ProbeSession:
    started = container.session()
    assert started("start()") == 0
    return started


def free_mib(process: ProbeSession) -> int:
    return int(process("info()")[1]) // MIB


def set_limit(process: ProbeSession, which: str, value: int) -> int:
    return int(process(f"kernels.set_limit({which}, {value})"))


def test_a_heap_beyond_the_memory_limit_is_refused(container: Container, process: ProbeSession) -> None:
    assert set_limit(process, HEAP, 6 * GIB) == OUT_OF_MEMORY
    assert process(f"kernels.limit({HEAP})") == 8 * MIB
    assert process("kernels.launch(kernels.load('heap_10'))") == 0
    assert container.world.mib_used() == CONTEXT_MIB + 10


def test_a_heap_is_charged_when_it_is_set_and_once_when_it_is_used(container: Container, process: ProbeSession) -> None:
    assert set_limit(process, HEAP, GIB) == 0
    assert free_mib(process) == ROOM_MIB - 1026
    assert container.world.mib_used() == CONTEXT_MIB
    assert process(f"alloc({(ROOM_MIB - 1026 + 2) * MIB})")[0] == OUT_OF_MEMORY
    assert process("kernels.launch(kernels.load('heap_10'))") == 0
    assert container.world.mib_used() == CONTEXT_MIB + 1026
    assert process(f"alloc({(ROOM_MIB - 1026) * MIB})")[0] == 0
    assert container.world.mib_used() == container.used_mib() == 2048


def test_a_module_fits_after_the_heap_was_taken(container: Container, process: ProbeSession) -> None:
    """The first measurement after the launch sees the heap, which is charged already."""
    assert set_limit(process, HEAP, 1200 * MIB) == 0
    assert process("kernels.launch(kernels.load('heap_10'))") == 0
    for _ in range(3):
        assert process("kernels.load('other_10')")
    assert container.used_mib() == container.world.mib_used()


@pytest.mark.parametrize("by", ["kernels.load('heap_10')", "kernels.from_library('heap_10')"])
def test_heaps_of_several_contexts_are_charged_each(container: Container, process: ProbeSession, by: str) -> None:
    assert set_limit(process, HEAP, 500 * MIB) == 0
    result, other = process("made('cuCtxCreate_v2', 0, 0)")
    assert result == 0
    assert set_limit(process, HEAP, 500 * MIB) == 0
    assert set_limit(process, HEAP, 600 * MIB) == OUT_OF_MEMORY
    assert process(f"kernels.launch({by})") == 0
    assert container.used_mib() <= 2048
    assert free_mib(process) == 2048 - 2 * (CONTEXT_MIB + 502)
    assert process(f"int(cuda.cuCtxDestroy_v2(ctypes.c_void_p({other})))") == 0
    assert free_mib(process) == ROOM_MIB - 502


def test_a_graph_takes_the_heap_too(container: Container, process: ProbeSession) -> None:
    assert set_limit(process, HEAP, GIB) == 0
    function = process("kernels.load('heap_10')")
    graph = process("graphs.create()")
    assert process(f"graphs.kernel({graph}, {function})") == 0
    _, instance = process(f"graphs.instantiate({graph})")
    assert process(f"graphs.launch({instance})") == 0
    assert container.world.mib_used() == CONTEXT_MIB + 1026
    assert process(f"alloc({(ROOM_MIB - 1026) * MIB})")[0] == 0


def test_a_smaller_heap_gives_back(process: ProbeSession) -> None:
    assert set_limit(process, HEAP, GIB) == 0
    assert set_limit(process, HEAP, 100 * MIB) == 0
    assert free_mib(process) == ROOM_MIB - 102
    assert set_limit(process, HEAP, 8 * MIB) == 0
    assert free_mib(process) == ROOM_MIB


def test_a_heap_that_is_in_use_cannot_be_changed(container: Container, process: ProbeSession) -> None:
    assert set_limit(process, HEAP, 100 * MIB) == 0
    assert process("kernels.launch(kernels.load('heap_10'))") == 0
    for size in (GIB, 50 * MIB):
        assert set_limit(process, HEAP, size) == INVALID_VALUE
        assert free_mib(process) == ROOM_MIB - 102
    assert container.used_mib() == container.world.mib_used() == CONTEXT_MIB + 102


@pytest.mark.parametrize("is_used", [True, False])
def test_a_heap_ends_with_the_primary_context(container: Container, process: ProbeSession, *, is_used: bool) -> None:
    assert set_limit(process, HEAP, GIB) == 0
    if is_used:
        assert process("kernels.launch(kernels.load('heap_10'))") == 0
        assert free_mib(process) == ROOM_MIB - 1026
    assert process("int(cuda.cuDevicePrimaryCtxReset_v2(0))") == 0
    assert container.used_mib() == container.world.mib_used() == 0
    assert process("start()") == 0
    assert free_mib(process) == ROOM_MIB


def test_records_of_pending_launches_are_charged(process: ProbeSession) -> None:
    assert set_limit(process, PENDING, 4 << 20) == OUT_OF_MEMORY
    assert process(f"kernels.limit({PENDING})") == 2048
    assert set_limit(process, PENDING, 100_000) == 0
    assert free_mib(process) == ROOM_MIB - 342


@pytest.mark.parametrize("which", ["kernels.PRINTF_SIZE", "kernels.L2_FETCH", "kernels.L2_PERSISTING"])
def test_limits_that_take_no_memory_of_the_card_are_not_charged(process: ProbeSession, which: str) -> None:
    assert set_limit(process, which, 4 * GIB) == 0
    assert free_mib(process) == ROOM_MIB


def test_a_limit_that_the_driver_does_not_have(process: ProbeSession) -> None:
    assert set_limit(process, "kernels.SYNC_DEPTH", 24) == UNSUPPORTED_LIMIT
    assert free_mib(process) == ROOM_MIB


def test_without_a_memory_limit_any_heap_is_set(make_container: Callable[..., Container], container: Container) -> None:
    process = replace(make_container(None, cores=30), world=container.world).session()
    assert process("start()") == 0
    assert set_limit(process, HEAP, 1 << 40) == 0
    assert process("kernels.launch(kernels.load('heap_10'))") == 0
    assert set_limit(process, HEAP, GIB) == INVALID_VALUE
