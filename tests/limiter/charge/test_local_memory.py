"""Local memory: a kernel that makes its context grow is checked against the limit, by every way to launch it."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from simgpu import state_directory
from simgpu.session import ProbeSession
from simgpu.world import World
from tests.limiter.conftest import Container

OUT_OF_MEMORY = 2
GIB = 1 << 30
CONTEXT = 500
LAUNCHES = ("cuLaunchKernel", "cuLaunchKernel_ptsz", "cuLaunchCooperativeKernel", "cuLaunchCooperativeKernel_ptsz")


@pytest.fixture
def container(make_world: Callable[..., World], make_container: Callable[..., Container]) -> Container:
    """A limit of 4 GiB on a card whose contexts take 500 MiB."""
    cards = tuple(replace(card, context_mib=CONTEXT) for card in state_directory.make_cards(1))
    return replace(make_container("4GiB"), world=make_world(cards))


@pytest.fixture
def process(container: Container) -> ProbeSession:
    started = container.session()
    assert started("start()") == 0
    return started


@pytest.mark.parametrize("by", LAUNCHES)
def test_the_charge_equals_the_memory_in_use(container: Container, process: ProbeSession, by: str) -> None:
    for bytes_each, mib in ((512, 0), (2048, 264), (1024, 264), (8192, 1848), (8192, 1848)):
        function = process(f"kernels.load('local{bytes_each}_10')")
        assert process(f"kernels.launch({function}, '{by}')") == 0
        assert (container.used_mib(), container.world.mib_used()) == (CONTEXT + mib, CONTEXT + mib)
    process("cuda.cuDevicePrimaryCtxReset_v2(0)")
    assert container.used_mib() == 0


@pytest.mark.parametrize("by", LAUNCHES)
def test_past_the_limit_it_is_refused_and_the_program_continues(
    container: Container, process: ProbeSession, by: str
) -> None:
    large, small = (process(f"kernels.load('local{size}_10')") for size in (32768, 8192))
    for _ in range(2):
        assert process(f"kernels.launch({large}, '{by}')") == OUT_OF_MEMORY
        assert (container.used_mib(), container.world.mib_used()) == (CONTEXT, CONTEXT)
    _, pointer = process(f"alloc({3 * GIB})")
    assert process(f"kernels.launch({small}, '{by}')") == OUT_OF_MEMORY
    process(f"free({pointer})")
    assert process(f"kernels.launch({small}, '{by}')") == 0
    assert process(f"alloc({2 * GIB})")[0] == OUT_OF_MEMORY
    assert process(f"kernels.launch({small}, '{by}')") == 0


def test_a_kernel_of_a_library_is_queried_through_the_library(container: Container, process: ProbeSession) -> None:
    for size, result in ((32768, OUT_OF_MEMORY), (8192, 0)):
        kernel = process(f"kernels.from_library('local{size}_10')")
        assert process(f"kernels.launch({kernel})") == result
    assert container.used_mib() == CONTEXT + 1848


def test_local_memory_of_a_graph_is_checked_at_its_instantiation(container: Container, process: ProbeSession) -> None:
    for size, expected in ((32768, OUT_OF_MEMORY), (8192, 0)):
        graph = process("graphs.create()")
        process(f"graphs.kernel({graph}, kernels.load('local512_10'))")
        process(f"graphs.kernel({graph}, kernels.load('local{size}_10'))")
        result, instance = process(f"graphs.instantiate({graph})")
        assert result == expected
    assert container.used_mib() == container.world.mib_used() == CONTEXT + 1848
    assert process(f"graphs.launch({instance})") == 0


def test_each_context_grows_by_itself(container: Container, process: ProbeSession) -> None:
    function = process("kernels.load('local8192_10')")
    assert process(f"kernels.launch({function})") == 0
    assert process("cuda.cuCtxCreate_v2(ctypes.byref(ctypes.c_void_p()), 0, 0)") == 0
    other = process("kernels.load('local8192_10')")
    assert process(f"kernels.launch({other})") == OUT_OF_MEMORY
    assert container.world.mib_used() == 2 * CONTEXT + 1848


def test_a_reused_function_address_is_queried_again(container: Container, process: ProbeSession) -> None:
    """The functions of an unloaded module may have the addresses of the next module's."""
    results = process("[kernels.once(f'local{size}_10') for _ in range(20) for size in (64, 32768)]")
    assert results == [0, OUT_OF_MEMORY] * 20
    assert container.world.mib_used() == CONTEXT
