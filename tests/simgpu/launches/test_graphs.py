"""Graphs: when their memory is reserved and when it is released."""

import time

import pytest

from simgpu import usage
from simgpu.session import ProbeSession
from simgpu.world import World

MIB = 1 << 20
OUT_OF_MEMORY, INVALID_VALUE, NOT_SUPPORTED = 2, 1, 801
CAPACITY_MIB = 81920
KERNEL, EMPTY, ALLOCATES, FREES = 0, 5, 10, 11
MARKS = "[graphs.read(mark) // 2**20 for mark in range(4)]"


def make(session: ProbeSession, *mib: int, freed: bool = True, flags: int = 0) -> tuple[int, list[int], int]:
    """A graph with these allocations, each freed before the next or not at all: graph, addresses, instance."""
    graph, pointers = session("graphs.create()"), []
    for size in mib:
        result, pointer = session(f"graphs.alloc({graph}, {size * MIB})")
        assert result == 0
        if freed:
            assert session(f"graphs.free({graph}, {pointer})") == 0
        pointers.append(pointer)
    result, instance = session(f"graphs.instantiate({graph}, {flags})")
    assert result == 0
    return graph, pointers, instance


@pytest.mark.parametrize("function", ["cuGraphLaunch", "cuGraphUpload", "cuGraphLaunch_ptsz", "cuGraphUpload_ptsz"])
def test_memory_is_taken_by_the_upload_or_the_first_launch_and_kept_until_a_trim(
    world: World, session: ProbeSession, function: str
) -> None:
    _, _, instance = make(session, 100, 50)
    assert world.mib_used() == 0
    for _ in range(2):
        assert session(f"graphs.launch({instance}, '{function}')") == 0
        assert world.mib_used() == 128
    assert session(f"graphs.destroy({instance})") == 0
    assert world.mib_used() == 128
    assert session("cuda.cuDeviceGraphMemTrim(0)") == 0
    assert world.mib_used() == 0


def test_the_attributes_count_what_is_used_and_reserved(session: ProbeSession) -> None:
    _, pointers, instance = make(session, 40, 50, freed=False)
    assert session(MARKS) == [0, 0, 0, 0]
    session(f"graphs.launch({instance})")
    assert session(MARKS) == [90, 90, 128, 128]
    assert session(f"free({pointers[0]}, 'cuMemFreeAsync')") == 0
    session("cuda.cuDeviceGraphMemTrim(0)")
    assert session(MARKS) == [50, 90, 64, 128]
    assert session("[graphs.write(graphs.USED_HIGH, 0), graphs.write(graphs.RESERVED_HIGH, 0)]") == [0, 0]
    assert session(MARKS) == [50, 50, 64, 64]
    assert session("[graphs.write(graphs.USED, 0), graphs.write(graphs.USED_HIGH, 1)]") == [INVALID_VALUE] * 2


@pytest.mark.parametrize(
    ("freed", "sizes", "mib"),
    [
        (False, (100,), 128),
        (True, (100, 60), 128),
        (False, (33, 33), 128),
        (False, (33, 33, 40, 1), 128),
        (False, (9, 9, 9, 9), 64),
        (False, (500, 500, 500, 500), 2048),
    ],
)
def test_blocks_are_reserved_as_on_an_h200(
    session: ProbeSession, freed: bool, sizes: tuple[int, ...], mib: int
) -> None:
    _, _, instance = make(session, *sizes, freed=freed)
    assert session(f"graphs.launch({instance}, 'cuGraphUpload')") == 0
    assert session("graphs.read(graphs.RESERVED)") == mib * MIB


def test_graphs_one_after_another_use_the_same_memory(world: World, session: ProbeSession) -> None:
    for size in (100, 60):
        _, _, instance = make(session, size)
        assert session(f"graphs.launch({instance})") == 0
        assert world.mib_used() == 128


def test_what_a_graph_leaves_is_used_until_it_is_freed(world: World, session: ProbeSession) -> None:
    _, (pointer,), instance = make(session, 64, freed=False)
    assert session(f"graphs.launch({instance})") == 0
    assert session(f"fill({pointer}, {64 * MIB})") == 0
    assert session(f"graphs.launch({instance})") == INVALID_VALUE
    session(f"graphs.destroy({instance})")
    session("cuda.cuDeviceGraphMemTrim(0)")
    assert world.mib_used() == 64
    assert session(f"free({pointer})") == 0
    session("cuda.cuDeviceGraphMemTrim(0)")
    assert world.mib_used() == 0
    assert session(f"fill({pointer}, 1)") == INVALID_VALUE


def test_an_instance_may_free_what_it_left_before_each_launch(world: World, session: ProbeSession) -> None:
    _, _, instance = make(session, 64, freed=False, flags=1)
    assert [session(f"graphs.launch({instance})") for _ in range(3)] == [0, 0, 0]
    assert world.mib_used() == 64


def test_a_graph_may_free_what_another_left(world: World, session: ProbeSession) -> None:
    _, (pointer,), instance = make(session, 64, freed=False)
    other = session("graphs.create()")
    assert session(f"graphs.free({other}, {pointer})") == 0
    _, freeing = session(f"graphs.instantiate({other})")
    assert [session(f"graphs.launch({launched})") for launched in (instance, freeing, freeing)] == [0, 0, INVALID_VALUE]
    session("cuda.cuDeviceGraphMemTrim(0)")
    assert world.mib_used() == 0


@pytest.mark.parametrize("call", ["graphs.launch({instance})", "graphs.launch({instance}, 'cuGraphUpload')"])
def test_a_graph_that_does_not_fit_is_out_of_memory(world: World, session: ProbeSession, call: str) -> None:
    _, _, instance = make(session, CAPACITY_MIB + 2)
    assert session(call.format(instance=instance)) == OUT_OF_MEMORY
    assert world.mib_used() == 0
    _, _, smaller = make(session, CAPACITY_MIB)
    assert session(f"graphs.launch({smaller})") == 0


def test_an_instantiation_that_uploads_takes_the_memory(world: World, session: ProbeSession) -> None:
    graph = session("graphs.create()")
    session(f"graphs.alloc({graph}, {64 * MIB})")
    result, _ = session(f"graphs.instantiate({graph}, graphs.UPLOAD, 'cuGraphInstantiateWithParams')")
    assert (result, world.mib_used()) == (0, 64)
    larger = session("graphs.create()")
    session(f"graphs.alloc({larger}, {(CAPACITY_MIB + 2) * MIB})")
    arguments = f"{larger}, graphs.UPLOAD, 'cuGraphInstantiateWithParams'"
    assert session(f"graphs.instantiate({arguments})") == [OUT_OF_MEMORY, 0]


@pytest.mark.parametrize(
    "function",
    [
        "cuGraphInstantiate",
        "cuGraphInstantiate_v2",
        "cuGraphInstantiateWithFlags",
        "cuGraphInstantiateWithParams",
        "cuGraphInstantiateWithParams_ptsz",
    ],
)
def test_a_graph_with_memory_has_one_instance_at_a_time(session: ProbeSession, function: str) -> None:
    graph = session("graphs.create()")
    session(f"graphs.alloc({graph}, {MIB})")
    result, instance = session(f"graphs.instantiate({graph}, 0, '{function}')")
    assert result == 0
    assert session(f"graphs.instantiate({graph}, 0, '{function}')") == [NOT_SUPPORTED, 0]
    session(f"graphs.destroy({instance})")
    assert session(f"graphs.instantiate({graph}, 0, '{function}')")[0] == 0


def test_nodes_report_their_types_and_parameters(session: ProbeSession) -> None:
    graph = session("graphs.create()")
    _, first = session(f"graphs.alloc_by_parameters({graph}, {3 * MIB})")
    _, second = session(f"graphs.alloc({graph}, {MIB})")
    assert first != second
    session(f"graphs.free({graph}, {second})")
    session(f"made('cuGraphAddEmptyNode', ctypes.c_void_p({graph}), None, ctypes.c_size_t())")
    assert session(f"graphs.types({graph})") == [ALLOCATES, ALLOCATES, FREES, EMPTY]
    assert session(f"graphs.told({graph})") == [3 * MIB, first]
    assert session(f"graphs.free({graph}, {second})") == INVALID_VALUE
    assert session(f"graphs.free({graph}, 4096)") == INVALID_VALUE


def test_a_launch_takes_the_time_of_its_kernels(session: ProbeSession) -> None:
    _, module = session("made('cuModuleLoadData', b'code')")
    _, function = session(f"made('cuModuleGetFunction', ctypes.c_void_p({module}), b'busy_100000')")
    graph = session("graphs.create()")
    assert [session(f"graphs.kernel({graph}, {function})") for _ in range(2)] == [0, 0]
    _, instance = session(f"graphs.instantiate({graph})")
    began = time.monotonic()
    assert session(f"graphs.launch({instance})") == 0
    assert session("cuda.cuCtxSynchronize()") == 0
    assert time.monotonic() - began >= 0.2


@pytest.mark.parametrize("freed", [True, False])
def test_memory_of_graphs_outlives_the_context(world: World, session: ProbeSession, *, freed: bool) -> None:
    _, _, instance = make(session, 64, freed=freed)
    assert session(f"graphs.launch({instance})") == 0
    assert session("cuda.cuDevicePrimaryCtxRelease_v2(0)") == 0
    assert world.mib_used() == 64
    assert session(MARKS)[:3:2] == [0 if freed else 64, 64]
    assert session("cuda.cuDeviceGraphMemTrim(0)") == 0
    assert world.mib_used() == (0 if freed else 64)


def test_each_device_has_graph_memory_of_its_own(world: World, session: ProbeSession) -> None:
    graph = session("graphs.create()")
    assert session(f"[graphs.alloc({graph}, {40 * MIB}, device)[0] for device in (0, 1)]") == [0, 0]
    _, instance = session(f"graphs.instantiate({graph})")
    assert session(f"graphs.launch({instance})") == 0
    assert sorted(usage.bytes_by_card(world.state).values()) == [64 * MIB, 64 * MIB]
    assert session("[graphs.read(graphs.USED, device) // 2**20 for device in (0, 1)]") == [40, 40]
