"""Memory whose size only the driver knows: contexts and modules are charged by NVML, and refused over the limit."""

import struct
import time

import pytest

from simgpu import state_directory, usage
from simgpu.session import ProbeSession
from tests.limiter.conftest import CONTEXT, LOAD, MIB, MODULE, Container
from vgpu.domain.formats import region

OUT_OF_MEMORY = 2
CREATE = "made('cuCtxCreate_v2', 0, 0)"


@pytest.fixture
def container(container_with_code: Container) -> Container:
    return container_with_code


def start(container: Container) -> ProbeSession:
    process = container.session()
    assert process("start()") == 0
    return process


def taken_mib(container: Container) -> int:
    return usage.bytes_by_card(container.world.state).get(container.world.cards[0].uuid, 0) // MIB


def test_a_context_is_charged_its_memory(container: Container) -> None:
    process = start(container)
    assert container.used_mib() == CONTEXT
    assert container.region().cards[0].context_bytes == CONTEXT * MIB
    assert process("info()") == [0, 44 * MIB, 64 * MIB]
    _, other = process(CREATE)
    assert container.used_mib() == 2 * CONTEXT
    assert process(f"cuda.cuCtxDestroy_v2(U64({other}))") == 0
    assert container.used_mib() == CONTEXT
    assert process("cuda.cuDevicePrimaryCtxRelease_v2(0)") == 0
    assert container.used_mib() == 0


def test_a_second_reference_to_the_primary_context_is_free(container: Container) -> None:
    process = start(container)
    assert process(f"alloc({44 * MIB})")[0] == 0
    assert process("start()") == 0
    assert container.used_mib() == 64


@pytest.mark.parametrize("made", [CREATE, LOAD])
def test_a_context_or_module_over_the_limit_is_undone(container: Container, made: str) -> None:
    process = start(container)
    _, pointer = process(f"alloc({42 * MIB})")
    assert process(made)[0] == OUT_OF_MEMORY
    assert container.used_mib() == taken_mib(container) == 62
    assert container.region().cards[0].refusals == 1
    process(f"free({pointer})")
    assert process(made)[0] == 0


def test_idle_pool_memory_is_trimmed_for_a_module(container: Container) -> None:
    process = start(container)
    process("globals().update(pool=U64()) or cuda.cuDeviceGetDefaultMemPool(ctypes.byref(pool), 0)")
    assert process("cuda.cuMemPoolSetAttribute(pool, 4, ctypes.byref(U64(2**64 - 1)))") == 0
    _, pointer = process(f"alloc({32 * MIB}, 'cuMemAllocAsync')")
    _, other = process(f"alloc({10 * MIB})")
    process(f"free({pointer}, 'cuMemFreeAsync')")
    process("cuda.cuCtxSynchronize()")
    assert taken_mib(container) == 62
    assert process(LOAD)[0] == 0
    assert container.used_mib() == taken_mib(container) == CONTEXT + 10 + MODULE
    process(f"free({other})")


def test_modules_are_charged_until_unloaded(container: Container) -> None:
    process = start(container)
    modules = [process(LOAD)[1] for _ in range(3)]
    assert container.used_mib() == CONTEXT + 3 * MODULE
    for module in modules:
        assert process(f"cuda.cuModuleUnload(U64({module}))") == 0
    assert container.used_mib() == CONTEXT


@pytest.mark.heavy
def test_processes_that_start_together_stay_under_the_limit(container: Container) -> None:
    """The first process records a context's size in the region; the others reserve it before the driver's call."""
    start(container)
    others = [container.session() for _ in range(6)]
    for other in others:
        other.tell("start()")
    assert sorted(other.answer() for other in others) == [0, 0, *[OUT_OF_MEMORY] * 4]
    peak_bytes = usage.peak_bytes_by_card(container.world.state)[container.world.cards[0].uuid]
    assert peak_bytes in (60 * MIB, 62 * MIB)  # with a probe of 2 MiB (charge/measure/nvml_probe.h)


def overcharge(container: Container, process: ProbeSession, mib: int) -> None:
    """Adds `mib` to the charge of a process, as if the library had counted too much."""
    path = container.folder / "region"
    place = [used.pid for used in container.region().processes].index(process.process.pid)
    with path.open("r+b") as file:
        for offset in (256 + 16, region.SLOTS_AT + place * region.SLOT_SIZE + 64):  # rows of the first card
            file.seek(offset)
            (used,) = struct.unpack("<Q", file.read(8))
            file.seek(offset)
            file.write(struct.pack("<Q", used + mib * MIB))


def test_an_excess_charge_is_corrected_before_a_refusal(container: Container) -> None:
    process = start(container)
    overcharge(container, process, 40)
    assert container.used_mib() == CONTEXT + 40
    assert process(f"alloc({44 * MIB})")[0] == 0
    assert container.used_mib() == taken_mib(container) == 64
    assert container.region().cards[0].refusals == 0


def test_an_excess_charge_of_another_process_is_corrected_before_a_refusal(container: Container) -> None:
    first, second = start(container), start(container)
    overcharge(container, first, 20)
    assert second(f"alloc({24 * MIB})")[0] == 0
    assert container.used_mib() == taken_mib(container) == 64
    assert container.region().cards[0].refusals == 0


def test_a_missing_charge_is_corrected_by_other_processes(container: Container) -> None:
    first, second = start(container), start(container)
    assert first(f"alloc({20 * MIB})")[0] == 0
    overcharge(container, first, -20)
    assert container.used_mib() == 2 * CONTEXT
    time.sleep(0.1)
    assert second("info()")[1] == 4 * MIB


def test_without_nvml_the_library_s_own_charges_count(container: Container) -> None:
    state_directory.inject_faults(container.world.state, ("nvmlInit_v2", 9))
    process = start(container)
    assert container.used_mib() == 0
    assert process(f"alloc({60 * MIB})")[0] == 0
    assert process(f"alloc({8 * MIB})")[0] == OUT_OF_MEMORY


def test_a_process_missing_from_nvml_s_list_keeps_its_charge(container: Container) -> None:
    state_directory.inject_faults(container.world.state, ("nvmlDeviceGetComputeRunningProcesses_v3", 3))
    process = start(container)
    assert process(f"alloc({60 * MIB})")[0] == 0
    time.sleep(0.02)
    process("info()")
    assert container.used_mib() == 60


def test_a_library_is_charged_at_its_first_use(container: Container) -> None:
    process = start(container)
    libraries = [process("made('cuLibraryLoadData', b'', None, None, 0, None, None, 0)")[1] for _ in range(2)]
    assert process(f"alloc({38 * MIB})")[0] == 0
    assert container.used_mib() == CONTEXT + 38
    assert process(f"made('cuLibraryGetModule', U64({libraries[0]}))")[0] == 0
    assert container.used_mib() == CONTEXT + 38 + MODULE
    assert process(f"made('cuLibraryGetModule', U64({libraries[1]}))")[0] == OUT_OF_MEMORY
    assert process(f"cuda.cuLibraryUnload(U64({libraries[1]}))") == 0
    assert container.used_mib() == taken_mib(container) == CONTEXT + 38 + MODULE
