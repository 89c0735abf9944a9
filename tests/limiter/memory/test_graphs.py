"""Memory of graphs is checked against the limit when the driver reserves it: at the upload or the launch."""

import ctypes
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simgpu.session import ProbeSession
from tests.limiter.conftest import MIB, Container

OUT_OF_MEMORY = 2
UPLOAD = 2
RUNS = ("cuGraphLaunch", "cuGraphUpload", "cuGraphLaunch_ptsz", "cuGraphUpload_ptsz")
BASE = 0x302000000


@pytest.fixture
def container(make_container: Callable[..., Container]) -> Container:
    return make_container("256MiB")


@pytest.fixture
def process(container: Container) -> ProbeSession:
    started = container.session()
    assert started("start()") == 0
    return started


def make(process: ProbeSession, *mib: int, freed: bool = True) -> tuple[int, list[int]]:
    """Instance and addresses of a graph that allocates `mib` at once, and frees them if `freed`."""
    graph = process("graphs.create()")
    pointers = [process(f"graphs.alloc({graph}, {size * MIB})")[1] for size in mib]
    for pointer in pointers if freed else ():
        assert process(f"graphs.free({graph}, {pointer})") == 0
    result, instance = process(f"graphs.instantiate({graph})")
    assert result == 0
    return instance, pointers


@pytest.mark.parametrize("function", RUNS)
def test_the_charge_equals_the_memory_in_use(container: Container, process: ProbeSession, function: str) -> None:
    instance, _ = make(process, 100)
    assert container.used_mib() == 0
    for _ in range(3):
        assert process(f"graphs.launch({instance}, '{function}')") == 0
        assert (container.used_mib(), container.world.mib_used()) == (128, 128)
    process(f"graphs.destroy({instance})")
    assert container.used_mib() == 128
    assert process("cuda.cuDeviceGraphMemTrim(0)") == 0
    assert (container.used_mib(), container.world.mib_used()) == (0, 0)


@pytest.mark.parametrize("function", RUNS)
def test_past_the_limit_it_is_refused_and_the_program_continues(
    container: Container, process: ProbeSession, function: str
) -> None:
    large, _ = make(process, 200)
    small, _ = make(process, 100)
    _, pointer = process(f"alloc({64 * MIB})")
    assert process(f"graphs.launch({large}, '{function}')") == OUT_OF_MEMORY
    assert (container.used_mib(), container.world.mib_used()) == (64, 64)
    assert process(f"graphs.launch({small}, '{function}')") == 0
    assert process(f"alloc({200 * MIB})")[0] == OUT_OF_MEMORY
    assert process(f"free({pointer})") == 0
    assert process(f"graphs.launch({large}, '{function}')") == 0
    assert (container.used_mib(), container.world.mib_used()) == (224, 224)


def test_graphs_share_reserved_memory(container: Container, process: ProbeSession) -> None:
    instances = [make(process, size)[0] for size in (100, 120, 200)]
    for instance in [*instances, *instances]:
        assert process(f"graphs.launch({instance})") == 0
    assert (container.used_mib(), container.world.mib_used()) == (224, 224)


def test_after_a_trim_graph_memory_is_reserved_again(container: Container, process: ProbeSession) -> None:
    instance, _ = make(process, 100)
    process(f"graphs.launch({instance})")
    process("cuda.cuDeviceGraphMemTrim(0)")
    _, pointer = process(f"alloc({200 * MIB})")
    assert process(f"graphs.launch({instance})") == OUT_OF_MEMORY
    process(f"free({pointer})")
    assert process(f"graphs.launch({instance})") == 0
    assert container.used_mib() == 128


def test_memory_that_a_graph_leaves_allocated_is_not_shared(container: Container, process: ProbeSession) -> None:
    leaving, (pointer,) = make(process, 100, freed=False)
    other, _ = make(process, 60)
    third, _ = make(process, 130)
    assert process(f"graphs.launch({leaving})") == 0
    assert process(f"graphs.launch({other})") == 0
    assert (container.used_mib(), container.world.mib_used()) == (128 + 64, 128 + 64)
    assert process(f"alloc({20 * MIB})")[0] == 0
    assert process(f"graphs.launch({third})") == OUT_OF_MEMORY
    assert container.world.mib_used() <= 256
    assert process(f"free({pointer}, 'cuMemFreeAsync')") == 0
    assert process(f"graphs.launch({third})") == 0
    assert container.used_mib() == container.world.mib_used()


def test_unused_graph_memory_causes_no_refusal(container: Container, process: ProbeSession) -> None:
    instance, _ = make(process, 150)
    process(f"graphs.launch({instance})")
    result, pointer = process(f"alloc({200 * MIB})")
    assert (result, container.used_mib(), container.world.mib_used()) == (0, 200, 200)
    assert process(f"graphs.launch({instance})") == OUT_OF_MEMORY
    process(f"free({pointer})")
    assert process(f"graphs.launch({instance})") == 0
    assert container.used_mib() == container.world.mib_used() == 160


def test_a_larger_graph_replaces_idle_graph_memory(container: Container, process: ProbeSession) -> None:
    """The idle memory is trimmed before the larger graph is charged in full."""
    small, large = make(process, 100)[0], make(process, 200)[0]
    process(f"graphs.launch({small})")
    _, pointer = process(f"alloc({40 * MIB})")
    assert process(f"graphs.launch({large})") == OUT_OF_MEMORY
    assert container.used_mib() == container.world.mib_used()
    process(f"free({pointer})")
    assert process(f"graphs.launch({large})") == 0
    assert container.used_mib() == container.world.mib_used() == 224


def test_a_graph_uploaded_at_instantiation_is_checked_then(container: Container, process: ProbeSession) -> None:
    graph = process("graphs.create()")
    process(f"graphs.free({graph}, graphs.alloc({graph}, {100 * MIB})[1])")
    process(f"alloc({200 * MIB})")
    made = f"graphs.instantiate({graph}, {UPLOAD}, 'cuGraphInstantiateWithParams')"
    assert process(made)[0] == OUT_OF_MEMORY
    assert (container.used_mib(), container.world.mib_used()) == (200, 200)
    process("cuda.cuDevicePrimaryCtxReset_v2(0)")


def test_graphs_without_memory_are_not_charged(container: Container, process: ProbeSession) -> None:
    _, instance = process("graphs.instantiate(graphs.create())")
    assert process(f"graphs.launch({instance})") == 0
    assert process("graphs.launch(64)") != 0
    assert container.used_mib() == 0


class Blocks(ctypes.Structure):
    _fields_ = (("sum", ctypes.c_uint64), ("end", ctypes.c_uint64))


def sum_of(pure: ctypes.CDLL, *allocations: tuple[float, float]) -> int:
    """MiB of the blocks for allocations, given as (offset from the first, size) in MiB."""
    blocks = Blocks()
    for place, size in allocations:
        pure.graph_blocks_add(
            ctypes.byref(blocks), ctypes.c_uint64(BASE + int(place * MIB)), ctypes.c_uint64(int(size * MIB))
        )
    return int(blocks.sum) // MIB


@pytest.mark.parametrize(
    ("allocations", "mib"),
    [
        (((0, 100),), 128),
        (((0, 100), (0, 60)), 128),
        (((0, 33), (33, 33)), 128),
        (((0, 33), (33, 33), (66, 40), (106, 1)), 128),
        (((0, 9), (9, 9), (18, 9), (27, 9)), 64),
        (((0, 500), (500, 500), (1000, 500), (1500, 500)), 2048),
        (((0, 0.001), *((0.001 + n, 1) for n in range(10)), (10.001, 33)), 96),
    ],
)
def test_block_sizes_equal_measurements(
    pure: ctypes.CDLL, allocations: tuple[tuple[float, float], ...], mib: int
) -> None:
    """Expected: the attribute RESERVED after the upload of such a graph on an H200, driver 580."""
    assert sum_of(pure, *allocations) == mib


@given(st.lists(st.integers(1, 200), min_size=1, max_size=30))
def test_blocks_cover_their_allocations(pure: ctypes.CDLL, sizes: list[int]) -> None:
    places = [sum(sizes[:n]) for n in range(len(sizes))]
    total = sum_of(pure, *zip(places, sizes, strict=True))
    assert sum(sizes) <= total <= sum(sizes) + 32 * len(sizes)
    assert total % 32 == 0
