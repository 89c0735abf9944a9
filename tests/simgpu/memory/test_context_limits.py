"""Limits of contexts, and the heap of device code, as measured on an H200 with driver 580."""

import pytest

from simgpu.session import ProbeSession
from simgpu.world import World

MIB = 1 << 20
GIB = 1 << 30
INVALID_VALUE = 1
HEAP = "kernels.HEAP_SIZE"


def test_the_first_kernel_that_calls_malloc_takes_the_heap(world: World, session: ProbeSession) -> None:
    assert session(f"[kernels.set_limit({HEAP}, {6 * GIB}), kernels.limit({HEAP})]") == [0, 6 * GIB]
    assert session("kernels.launch(kernels.load('other_10'))") == 0
    assert world.mib_used() == 0
    for _ in range(2):
        assert session("kernels.launch(kernels.load('heap_10'))") == 0
        assert world.mib_used() == 6146
    assert session(f"[kernels.set_limit({HEAP}, {GIB}), kernels.limit({HEAP})]") == [INVALID_VALUE, 6 * GIB]
    session("cuda.cuDevicePrimaryCtxReset_v2(0)")
    assert world.mib_used() == 0


def test_the_heap_has_a_default_size(world: World, session: ProbeSession) -> None:
    assert session(f"kernels.limit({HEAP})") == 8 * MIB
    assert session("kernels.launch(kernels.load('heap_10'))") == 0
    assert world.mib_used() == 10


@pytest.mark.parametrize(
    ("which", "largest"), [(HEAP, 17681179680), ("kernels.PENDING_LAUNCHES", 599186), ("kernels.PRINTF_SIZE", 2 * GIB)]
)
def test_more_than_the_largest_value_sets_that(session: ProbeSession, which: str, largest: int) -> None:
    assert session(f"[kernels.set_limit({which}, {1 << 40}), kernels.limit({which})]") == [0, largest]
