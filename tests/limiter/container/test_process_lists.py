"""NVML's process lists inside a container: its own processes with their charges, and no others."""

import os
from collections.abc import Callable

import pytest

import limiter
from simgpu.session import ProbeSession
from simgpu.world import World
from tests.gpu import process_view
from tests.limiter.conftest import MIB, Container

INVALID_ARGUMENT, NOT_FOUND, INSUFFICIENT_SIZE, VERSION_MISMATCH = 2, 6, 7, 25
LISTS = [f"nvmlDeviceGetComputeRunningProcesses{version}" for version in ("", "_v2", "_v3")]
BUSY = "cuda.cuLaunchKernel(ctypes.c_void_p({}), *[1] * 6, 0, None, None, None)"


def holding(session: ProbeSession, mib: int) -> ProbeSession:
    assert session("start()") == 0
    session("nvml('nvmlInit')")
    assert session(f"alloc({mib * MIB})")[0] == 0
    return session


def entry(session: ProbeSession, mib: int) -> list[int]:
    return [session.process.pid, mib * MIB]


@pytest.fixture
def ours(container: Container) -> ProbeSession:
    return holding(container.session(), 6)


@pytest.fixture
def sibling(container: Container, ours: ProbeSession) -> ProbeSession:
    assert ours.process.pid
    return holding(container.session(), 4)


@pytest.fixture
def stranger(make_container: Callable[..., Container]) -> ProbeSession:
    """Two processes on the card: one of another container, and one without limits."""
    other = make_container()
    other.world.hold(10)
    return holding(other.session(), 8)


@pytest.mark.parametrize("function", LISTS)
def test_every_version_lists_the_container_s_processes(
    stranger: ProbeSession, ours: ProbeSession, sibling: ProbeSession, function: str
) -> None:
    expected = sorted([entry(ours, 6), entry(sibling, 4)])
    for session in (ours, sibling):
        result, shown = session(f"listed({function!r})")
        assert (result, sorted(shown)) == (0, expected)
    assert stranger(f"listed({function!r})") == [0, [entry(stranger, 8)]]


@pytest.mark.parametrize("function", LISTS)
def test_only_the_container_s_processes_need_room(
    stranger: ProbeSession, ours: ProbeSession, sibling: ProbeSession, function: str
) -> None:
    assert stranger.process.pid != sibling.process.pid
    assert ours(f"listed({function!r}, room=0)") == [INSUFFICIENT_SIZE, 2]
    assert ours(f"listed({function!r}, room=1)") == [INSUFFICIENT_SIZE, 2]
    assert ours(f"listed({function!r}, room=2)")[0] == 0


def test_a_process_list_longer_than_the_first_guess_is_complete(world: World, ours: ProbeSession) -> None:
    for _ in range(70):
        world.start(str(world.bin / "gpuprobe"), "--hold", "0", "alloc", "1")
    while len(world.session()("nvml('nvmlInit') or processes()")) < 71:
        pass
    assert ours(f"listed({LISTS[2]!r})") == [0, [entry(ours, 6)]]


def test_another_card_s_list_is_empty_there(stranger: ProbeSession, ours: ProbeSession) -> None:
    assert stranger("processes(1)") == ours("processes(1)") == []


def test_without_limits_the_driver_s_list_is_returned(world: World, ours: ProbeSession) -> None:
    session = world.session()
    session("nvml('nvmlInit')")
    assert session("processes()") == [entry(ours, 6)]


@pytest.mark.parametrize("function", [*LISTS, "nvmlDeviceGetAccountingPids"])
@pytest.mark.parametrize("arguments", ["None, None", "ctypes.byref(ctypes.c_uint(3)), None"])
def test_invalid_arguments_return_the_driver_s_error(
    world: World, ours: ProbeSession, function: str, arguments: str
) -> None:
    native = world.session()
    native("nvml('nvmlInit')")
    call = f"ctypes.CDLL('libnvidia-ml.so.1').{function}(card(), {arguments})"
    assert ours(call) == native(call) != 0


def test_graphics_and_mps_lists_are_empty(ours: ProbeSession) -> None:
    for kind in ("Graphics", "MPSCompute"):
        for version in ("", "_v2", "_v3"):
            assert ours(f"listed('nvmlDeviceGet{kind}RunningProcesses{version}')") == [0, []]


def test_the_detailed_list_says_the_same(stranger: ProbeSession, ours: ProbeSession) -> None:
    details = "pynvml.nvmlDeviceGetRunningProcessDetailList(card(), pynvml.nvmlProcessDetailList_v1, {})"
    shown = f"[[p.pid, p.usedGpuMemory] for p in {details}]"
    assert ours(shown.format(0)) == [entry(ours, 6)]
    assert ours(shown.format(1)) == []
    assert stranger(shown.format(3)) == [entry(stranger, 8)]


def test_an_unknown_version_of_the_list_is_refused(ours: ProbeSession) -> None:
    library = "ctypes.CDLL('libnvidia-ml.so.1')"
    assert ours(f"{library}.nvmlDeviceGetRunningProcessDetailList(card(), (ctypes.c_uint * 8)(9))") == VERSION_MISMATCH
    assert ours(f"{library}.nvmlDeviceGetProcessesUtilizationInfo(card(), (ctypes.c_uint * 8)(9))") == VERSION_MISMATCH


@pytest.mark.parametrize("name", ["nvmlDeviceGetProcessUtilization", "nvmlDeviceGetProcessesUtilizationInfo"])
def test_utilisation_contains_the_container_s_processes(stranger: ProbeSession, ours: ProbeSession, name: str) -> None:
    samples = f"[s.pid for s in pynvml.{name}(card(), 0)]"
    for session in (stranger, ours):
        module = session("made('cuModuleLoadData', b'code')")[1]
        function = session(f"made('cuModuleGetFunction', ctypes.c_void_p({module}), b'busy_1000')")[1]
        if session is ours:
            assert ours(f"nvml({name!r}, card(), 0)") == NOT_FOUND
        assert session(BUSY.format(function)) == 0
        assert session(samples) == [session.process.pid]


def test_accounting_contains_the_container_s_processes(stranger: ProbeSession, ours: ProbeSession) -> None:
    assert ours("list(pynvml.nvmlDeviceGetAccountingPids(card()))") == [ours.process.pid]
    stats = "nvml('nvmlDeviceGetAccountingStats', card(), {})"
    assert ours(stats.format(stranger.process.pid)) == NOT_FOUND
    assert ours(f"{stats.format(ours.process.pid)}.isRunning") == 1
    assert ours("ctypes.CDLL('libnvidia-ml.so.1').nvmlDeviceGetAccountingStats(card(), 1, None)") == INVALID_ARGUMENT


@pytest.mark.gpu
def test_on_a_real_card_a_container_sees_only_itself() -> None:
    with limiter.environment("4GiB", 100, "fixed", os.environ) as limited:
        assert process_view.wrong(process_view.look(os.environ, limited)) == []
