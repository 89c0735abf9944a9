"""What a process holds beyond its allocations, and NVML's lists of processes."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from simgpu import state_directory, usage
from simgpu.session import ProbeSession
from simgpu.world import World

KIB = 1 << 10
MIB = 1 << 20
OUT_OF_MEMORY = 2
INSUFFICIENT_SIZE = 7
CONTEXT_MIB = 500
MODULE_KIB = 300


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    return make_world(
        tuple(replace(card, context_mib=CONTEXT_MIB, module_kib=MODULE_KIB) for card in state_directory.make_cards(1))
    )


@pytest.fixture
def session(world: World) -> ProbeSession:
    started = world.session()
    assert started("start()") == 0
    started("nvml('nvmlInit')")
    return started


def kib_held(world: World) -> int:
    return sum(usage.bytes_by_card(world.state).values()) // KIB


def test_each_context_is_held_while_it_lives(world: World, session: ProbeSession) -> None:
    assert kib_held(world) == CONTEXT_MIB * KIB
    result, context = session("made('cuCtxCreate_v2', 0, 0)")
    assert result == 0
    assert session("processes()") == [[session.process.pid, 2 * CONTEXT_MIB * MIB]]
    assert session(f"cuda.cuCtxDestroy_v2(ctypes.c_void_p({context}))") == 0
    assert kib_held(world) == CONTEXT_MIB * KIB
    assert session("cuda.cuDevicePrimaryCtxReset_v2(0)") == 0
    assert kib_held(world) == 0


@pytest.mark.parametrize(
    ("load", "unload"),
    [
        ("'cuModuleLoad', b'file'", "cuModuleUnload"),
        ("'cuModuleLoadData', b'code'", "cuModuleUnload"),
        ("'cuModuleLoadDataEx', b'code', 0, None, None", "cuModuleUnload"),
        ("'cuModuleLoadFatBinary', b'code'", "cuModuleUnload"),
    ],
)
def test_code_is_held_until_it_is_unloaded(world: World, session: ProbeSession, load: str, unload: str) -> None:
    (first, one), (second, two) = session(f"[made({load}) for _ in range(2)]")
    assert (first, second) == (0, 0)
    assert kib_held(world) == CONTEXT_MIB * KIB + 2 * MODULE_KIB
    assert session(f"cuda.{unload}(ctypes.c_void_p({one}))") == 0
    assert kib_held(world) == CONTEXT_MIB * KIB + MODULE_KIB
    assert session(f"cuda.{unload}(ctypes.c_void_p({two}))") == 0
    assert kib_held(world) == CONTEXT_MIB * KIB


@pytest.mark.parametrize("load", ["'cuLibraryLoadData', b'code'", "'cuLibraryLoadFromFile', b'file'"])
def test_a_library_is_code_of_each_context_from_its_first_use_on(
    world: World, session: ProbeSession, load: str
) -> None:
    _, library = session(f"made({load}, None, None, 0, None, None, 0)")
    _, kernel = session(f"made('cuLibraryGetKernel', ctypes.c_void_p({library}), b'busy_1')")
    assert kib_held(world) == CONTEXT_MIB * KIB
    assert session(f"made('cuLibraryGetModule', ctypes.c_void_p({library}))")[0] == 0
    assert kib_held(world) == CONTEXT_MIB * KIB + MODULE_KIB
    session("made('cuCtxCreate_v2', 0, 0)")
    for _ in range(2):
        result, function = session(f"made('cuKernelGetFunction', ctypes.c_void_p({kernel}))")
        assert result == 0
        assert kib_held(world) == 2 * CONTEXT_MIB * KIB + 2 * MODULE_KIB
    for code in (function, kernel):
        assert session(f"cuda.cuLaunchKernel(ctypes.c_void_p({code}), *[1] * 6, 0, None, None, None)") == 0
    assert session(f"cuda.cuLibraryUnload(ctypes.c_void_p({library}))") == 0
    assert kib_held(world) == 2 * CONTEXT_MIB * KIB


def test_code_goes_with_its_context(world: World, session: ProbeSession) -> None:
    session("made('cuModuleLoadData', b'code')")
    assert session("cuda.cuDevicePrimaryCtxRelease_v2(0)") == 0
    assert kib_held(world) == 0


def test_code_that_does_not_fit_is_out_of_memory(make_world: Callable[..., World]) -> None:
    session = make_world(
        tuple(replace(card, module_kib=5 * KIB) for card in state_directory.make_cards(1, memory_mib=4))
    ).session()
    assert session("start()") == 0
    assert session("made('cuModuleLoadData', b'code')") == [OUT_OF_MEMORY, 0]
    assert session(f"alloc({4 * MIB})")[0] == 0


@pytest.mark.parametrize("version", ["", "_v2", "_v3"])
def test_every_version_of_the_list_says_all_that_is_held(session: ProbeSession, version: str) -> None:
    session(f"alloc({6 * MIB})")
    expected = [[session.process.pid, (CONTEXT_MIB + 6) * MIB]]
    assert session(f"listed('nvmlDeviceGetComputeRunningProcesses{version}')") == [0, expected]
    assert session(f"listed('nvmlDeviceGetComputeRunningProcesses{version}', room=0)") == [INSUFFICIENT_SIZE, 1]
    for kind in ("Graphics", "MPSCompute"):
        assert session(f"listed('nvmlDeviceGet{kind}RunningProcesses{version}')") == [0, []]


def test_the_detailed_list_says_the_same(session: ProbeSession) -> None:
    details = "pynvml.nvmlDeviceGetRunningProcessDetailList(card(), pynvml.nvmlProcessDetailList_v1, {})"
    shown = f"[[p.pid, p.usedGpuMemory] for p in {details}]"
    assert session(shown.format(0)) == [[session.process.pid, CONTEXT_MIB * MIB]]
    assert session(shown.format(3)) == [[session.process.pid, CONTEXT_MIB * MIB]]
    assert session(shown.format(1)) == []


def test_utilisation_is_sampled_by_process(world: World, session: ProbeSession) -> None:
    world.hold(10)
    samples = "[[s.pid, s.smUtil] for s in pynvml.{}(card(), {})]"
    assert session("nvml('nvmlDeviceGetProcessUtilization', card(), 0)") == 6
    _, module = session("made('cuModuleLoadData', b'code')")
    _, function = session(f"made('cuModuleGetFunction', ctypes.c_void_p({module}), b'busy_100000')")
    launch = f"cuda.cuLaunchKernel(ctypes.c_void_p({function}), *[1] * 6, 0, None, None, None)"
    for name in ("nvmlDeviceGetProcessUtilization", "nvmlDeviceGetProcessesUtilizationInfo"):
        assert session(f"[{launch}, {samples.format(name, 0)}]") == [0, [[session.process.pid, 100]]]
        assert session("cuda.cuCtxSynchronize()") == 0
        assert session(samples.format(name, 0)) == [[session.process.pid, 100]]
        assert session(f"nvml('{name}', card(), 2**60)") == 6
