"""What an allocation takes of a card and what odd calls return, as measured on an H200 with driver 580."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from simgpu import usage
from simgpu.world import World

pytestmark = pytest.mark.heavy


MIB = 1 << 20
PAGE = 2 * MIB
OUT_OF_MEMORY = 2


@pytest.mark.parametrize(
    ("count", "size", "mib"),
    [(200, 1, 2), (200, 4096, 2), (200, 307200, 68), (200, 716800, 200), (200, MIB, 200), (20, MIB + 1, 40)],
)
def test_small_allocations_share_pages(world: World, count: int, size: int, mib: int) -> None:
    session = world.session()
    session("start()")
    pointers = session(f"[alloc({size})[1] for _ in range({count})]")
    assert len({*pointers}) == count
    assert world.mib_used() == mib
    assert session(f"[free(p) for p in {pointers}]") == [0] * count
    assert world.mib_used() == 0


sizes = st.one_of(st.integers(1, 5000), st.integers(1, 6 * MIB))


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(steps=st.lists(st.tuples(st.booleans(), sizes, st.integers(0, 20)), max_size=15))
def test_allocations_never_overlap_and_all_comes_back(world: World, steps: list[tuple[bool, int, int]]) -> None:
    session = world.only_session()
    live: dict[int, int] = {}
    for give, size, which in steps:
        if give and live:
            pointer = sorted(live)[which % len(live)]
            assert session(f"free({pointer})") == 0
            del live[pointer]
            continue
        result, pointer = session(f"alloc({size})")
        assert result == 0
        assert session(f"[fill({pointer}, {size}), fill({pointer}, {size + 1})]") == [0, 1]
        assert all(pointer + size <= other or other + live[other] <= pointer for other in live)
        live[pointer] = size
    taken = sum(usage.bytes_by_card(world.state).values())
    assert taken % PAGE == 0
    assert sum(live.values()) <= taken <= sum(-(-size // PAGE) * PAGE for size in live.values())
    assert session(f"[free(p) for p in {[*live]}]") == [0] * len(live)
    assert usage.bytes_by_card(world.state) == {}


def test_a_pool_holds_what_it_reserved_until_a_synchronisation(world: World) -> None:
    session = world.session()
    session("start()")
    small = session(f"alloc({MIB}, 'cuMemAllocAsync')")[1]
    large = session(f"alloc({40 * MIB}, 'cuMemAllocAsync')")[1]
    assert world.mib_used() == 64
    assert session(f"[free({small}, 'cuMemFreeAsync'), free({large}, 'cuMemFreeAsync')]") == [0, 0]
    assert world.mib_used() == 64
    session("cuda.cuCtxSynchronize()")
    assert world.mib_used() == 0


def test_releasing_the_context_frees_its_memory(world: World) -> None:
    session = world.session()
    session("start()")
    session(f"[alloc({MIB}), alloc({9 * MIB})]")
    assert world.mib_used() == 2 + 10
    assert session("cuda.cuDevicePrimaryCtxRelease_v2(0)") == 0
    assert world.mib_used() == 0
    assert session("alloc(4096)")[0] == 709


def test_a_pools_memory_outlives_every_context(world: World) -> None:
    session = world.session()
    session("start()")
    _, context = session("made('cuCtxCreate_v2', 0, 0)")
    _, pointer = session(f"[alloc({9 * MIB}), alloc({MIB}, 'cuMemAllocAsync')][1]")
    assert session(f"cuda.cuCtxDestroy_v2(ctypes.c_void_p({context}))") == 0
    assert world.mib_used() == 32
    assert session(f"fill({pointer}, {MIB})") == 0
    assert session("cuda.cuDevicePrimaryCtxReset_v2(0)") == 0
    assert world.mib_used() == 32
    assert session(f"start() or fill({pointer}, {MIB}) or free({pointer}, 'cuMemFreeAsync')") == 0
    assert session("cuda.cuCtxSynchronize()") == 0
    assert world.mib_used() == 0


def test_a_context_s_end_trims_pools_as_a_synchronisation_does(world: World) -> None:
    session = world.session()
    session("start()")
    _, pointer = session(f"alloc({MIB}, 'cuMemAllocAsync')")
    assert session(f"free({pointer}, 'cuMemFreeAsync')") == 0
    assert world.mib_used() == 32
    assert session("cuda.cuDevicePrimaryCtxRelease_v2(0)") == 0
    assert world.mib_used() == 0


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("alloc(0)[0]", 1),
        ("alloc(2**45)[0]", OUT_OF_MEMORY),
        ("alloc(2**64 - 1)[0]", OUT_OF_MEMORY),
        ("alloc(0, 'cuMemAllocAsync')[0]", 0),
        ("free(0)", 0),
        ("free(4096)", 1),
        ("free(4096, 'cuMemFreeAsync')", 1),
        ("fill(4096, 1)", 1),
        ("alloc(4096, 'cuMemAlloc')[0]", 201),
        ("cuda.cuCtxPopCurrent_v2(None) or info()[0]", 201),
    ],
)
def test_odd_calls_return_what_a_real_driver_returns(world: World, expression: str, result: int) -> None:
    session = world.session()
    assert session("start()") == 0
    assert session(expression) == result
