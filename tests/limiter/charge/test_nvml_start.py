"""NVML is initialised in a thread beside the creation of the first context, and the thread is over after it."""

import select
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from simgpu import state_directory
from simgpu.build import OUT
from simgpu.session import ProbeSession
from tests.limiter.conftest import CONTEXT, LOAD, MIB, MODULE, Build, Container

CREATION_HANGS = ("cuDevicePrimaryCtxRetain", state_directory.HANGS)
NVML_FAILS = ("nvmlInit_v2", 9)
NO_PHYSICAL_MEMORY = ("cuMemCreate", 2)
LISTS_NO_PROCESS = ("nvmlDeviceGetComputeRunningProcesses_v3", 3)


@pytest.fixture
def container(container_with_code: Container) -> Container:
    return container_with_code


def inject(container: Container, *faults: tuple[str, int]) -> None:
    state_directory.inject_faults(container.world.state, *faults)


def creating(container: Container, *faults: tuple[str, int]) -> ProbeSession:
    """Return a process that is creating its context, which hangs until the faults are replaced."""
    inject(container, CREATION_HANGS, *faults)
    process = container.session()
    process.tell("start()")
    return process


def threads(process: ProbeSession) -> int:
    return len(list(Path(f"/proc/{process.process.pid}/task").iterdir()))


def wait_until(is_true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def has_nvml(process: ProbeSession) -> bool:
    return "libnvidia-ml" in Path(f"/proc/{process.process.pid}/maps").read_text()


def test_nvml_is_initialised_while_the_context_is_made(container: Container) -> None:
    process = creating(container)
    wait_until(lambda: has_nvml(process) and threads(process) == 1)
    inject(container, NVML_FAILS)
    assert process.answer() == 0
    assert container.used_mib() == CONTEXT


def test_nvml_that_failed_meanwhile_is_initialised_after_the_context(container: Container) -> None:
    process = creating(container, NVML_FAILS)
    wait_until(lambda: has_nvml(process) and threads(process) == 1)
    inject(container)
    assert process.answer() == 0
    assert container.used_mib() == CONTEXT


def test_the_context_s_maker_waits_for_a_thread_that_is_inside_nvml(container: Container) -> None:
    nvml_hangs = (f"nvmlDeviceGetHandleByUUID@{container.world.cards[0].uuid}", state_directory.HANGS)
    process = creating(container, nvml_hangs)
    wait_until(lambda: has_nvml(process) and threads(process) == 2)
    time.sleep(0.1)
    inject(container, nvml_hangs)
    assert process.process.stdout
    assert not select.select([process.process.stdout], [], [], 0.3)[0]
    inject(container)
    assert process.answer() == 0
    assert threads(process) == 1
    assert container.used_mib() == CONTEXT


def test_a_context_in_a_library_s_constructor(container: Container, built: Build) -> None:
    """The thread cannot get the loader's lock, which the constructor's thread holds until the library is loaded."""
    library = built("preload/plugin.c", "-DIN_CONSTRUCTOR", "-fPIC", "-shared", str(OUT / "libcuda.so.1"))
    inject(container, CREATION_HANGS)
    process = container.session()
    process.tell(f"list((ctypes.c_int * 3).in_dll(ctypes.CDLL('{library}'), 'constructed'))")
    wait_until(lambda: threads(process) == 2)
    time.sleep(0.3)
    inject(container)
    assert process.answer() == [0, 0, 2]
    assert container.used_mib() == CONTEXT + 40
    wait_until(lambda: threads(process) == 1)


def test_a_context_that_fails_leaves_no_thread(container: Container) -> None:
    inject(container, ("cuDevicePrimaryCtxRetain", 46))
    process = container.session()
    assert process("start()") == 46
    assert threads(process) == 1
    inject(container)
    assert process("start()") == 0
    assert container.used_mib() == CONTEXT


def test_the_size_of_a_context_becomes_known(container: Container) -> None:
    assert container.session()("start()") == 0
    assert container.region().cards[0].context_bytes == CONTEXT * MIB


@pytest.mark.parametrize(("room", "faults"), [(2, ()), (0, (NO_PHYSICAL_MEMORY,))])
def test_the_probe_takes_no_memory_beyond_the_limit(
    container: Container, room: int, faults: tuple[tuple[str, int], ...]
) -> None:
    """Without room for it, NVML is initialised before the context, whose memory is the proof."""
    first, second = container.session(), container.session()
    assert first("start()") == 0
    assert first(f"alloc({(64 - 2 * CONTEXT - room) * MIB})")[0] == 0
    inject(container, *faults)
    assert second("start()") == 0
    assert container.used_mib() == container.world.mib_used()
    assert container.region().cards[0].peak_bytes <= 64 * MIB


@pytest.mark.parametrize("fault", [NO_PHYSICAL_MEMORY, LISTS_NO_PROCESS])
def test_without_a_proof_a_module_s_memory_is_the_proof(container: Container, fault: tuple[str, int]) -> None:
    inject(container, fault)
    process = container.session()
    assert process("start()") == 0
    assert container.used_mib() == 0
    inject(container)
    assert process(LOAD)[0] == 0
    assert container.used_mib() == CONTEXT + MODULE
