"""Local memory: what the first launch of a kernel takes, as measured on an H200 with driver 580."""

import pytest

from simgpu.session import ProbeSession
from simgpu.world import World

MIB = 1 << 20
OUT_OF_MEMORY, INVALID_HANDLE = 2, 400
CAPACITY_MIB = 81920


@pytest.mark.parametrize("by", ["cuLaunchKernel", "cuLaunchCooperativeKernel"])
def test_local_memory_is_charged_once_for_the_largest_kernel(world: World, session: ProbeSession, by: str) -> None:
    for bytes_each, mib in ((512, 0), (1024, 0), (2048, 264), (1024, 264), (16384, 3960), (4096, 3960)):
        function = session(f"kernels.load('local{bytes_each}_10')")
        assert session(f"kernels.local_size({function})") == [0, bytes_each]
        assert session(f"kernels.launch({function}, '{by}')") == 0
        assert world.mib_used() == mib
    assert session("kernels.stack()") == 16384
    session("cuda.cuDevicePrimaryCtxReset_v2(0)")
    assert world.mib_used() == 0


def test_a_kernel_of_a_library_is_asked_as_such(session: ProbeSession) -> None:
    kernel = session("kernels.from_library('local2048_10')")
    assert session(f"kernels.local_size({kernel})")[0] == INVALID_HANDLE
    assert session(f"kernels.launch({kernel})") == 0
    assert session("kernels.stack()") == 2048


def test_a_graph_charges_local_memory_at_its_instantiation(world: World, session: ProbeSession) -> None:
    function = session("kernels.load('local2048_10')")
    graph = session("graphs.create()")
    assert session(f"graphs.kernel({graph}, {function})") == 0
    assert world.mib_used() == 0
    result, instance = session(f"graphs.instantiate({graph})")
    assert (result, world.mib_used()) == (0, 264)
    assert session(f"graphs.launch({instance})") == 0
    assert world.mib_used() == 264


def test_setting_the_stack_size_charges_the_same(world: World, session: ProbeSession) -> None:
    assert session("[kernels.set_stack(65536), kernels.stack()]") == [0, 65536]
    assert world.mib_used() == 16632


def test_local_memory_on_a_full_card_is_out_of_memory(session: ProbeSession) -> None:
    function = session("kernels.load('local65536_10')")
    _, pointer = session(f"alloc({(CAPACITY_MIB - 100) * MIB})")
    assert session(f"kernels.launch({function})") == OUT_OF_MEMORY
    assert session("kernels.set_stack(2048)") == OUT_OF_MEMORY
    session(f"free({pointer})")
    assert session(f"kernels.launch({function})") == 0
