"""NVML that fails from the start of a process: never beyond the limit, and right again when it answers.

The first context of a process is not charged meanwhile: no call tells its size.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from simgpu import state_directory
from simgpu.session import ProbeSession
from simgpu.state_directory import NvmlFailures
from simgpu.world import World
from tests.limiter.charge import test_nvml_failures as failures
from tests.limiter.conftest import MIB, Container

LIMIT_MIB, CONTEXT_MIB, MODULE_MIB = failures.LIMIT_MIB, failures.CONTEXT_MIB, failures.MODULE_MIB
FIRST_CONTEXTS_MIB = 2 * CONTEXT_MIB  # of the two processes
TRUSTED_S = 0.5  # NVML is believed again within this time after it answers
UNDONE_MIB = failures.UNDONE_MIB | {"context": CONTEXT_MIB}

# What fails from the start: the whole of NVML, its initialisation, the search for the card, the list of processes.
STARTS: dict[str, Callable[[Path], None]] = {
    "every call": lambda state: state_directory.inject_nvml_failures(state, NvmlFailures(results=(999,))),
    "nvmlInit": lambda state: state_directory.inject_faults(state, ("nvmlInit_v2", 9)),
    "lookup": lambda state: state_directory.inject_faults(state, ("nvmlDeviceGetHandleByUUID", 6)),
    "list": lambda state: state_directory.inject_faults(state, ("nvmlDeviceGetComputeRunningProcesses_v3", 3)),
}


@pytest.fixture
def container(make_world: Callable[..., World], make_container: Callable[..., Container]) -> Container:
    cards = tuple(
        replace(card, context_mib=CONTEXT_MIB, module_kib=MODULE_MIB * 1024) for card in state_directory.make_cards(1)
    )
    return replace(make_container(f"{LIMIT_MIB}MiB"), world=make_world(cards))


def fill(process: ProbeSession, other: ProbeSession, kind: str) -> None:
    failures.take_all(process, kind)
    failures.free_some(process, kind, 3)
    failures.take_all(other, kind)
    failures.take_all(process, kind)


def test_without_nvml_s_library_the_limit_holds(container: Container, tmp_path: Path) -> None:
    (tmp_path / "only-cuda").mkdir()
    (tmp_path / "only-cuda" / "libcuda.so.1").symlink_to(container.world.bin / "libcuda.so.1")
    process = container.session(LD_LIBRARY_PATH=str(tmp_path / "only-cuda"))
    assert process("start()") == 0
    process(f"exec({failures.PROGRAM!r}, globals())")
    assert process("[key for key in open('/proc/self/maps') if 'nvidia-ml' in key]") == []
    for kind in ("module", "stack", "context", "linear"):
        failures.take_all(process, kind)
    assert container.world.mib_used() <= LIMIT_MIB + CONTEXT_MIB


@pytest.mark.heavy
@pytest.mark.parametrize("kind", failures.CLASSES)
@pytest.mark.parametrize(
    "start", [pytest.param(start, marks=[pytest.mark.slow] * (start != "nvmlInit")) for start in STARTS]
)
def test_nvml_that_fails_from_the_start(container: Container, start: str, kind: str) -> None:
    STARTS[start](container.world.state)
    process, other = failures.started(container), failures.started(container)
    fill(process, other, kind)
    seen = (container.world.mib_used(), failures.peak_mib(container), container.used_mib())
    failures.reconcile(container, process, other, for_s=TRUSTED_S)
    assert seen[0] <= LIMIT_MIB + FIRST_CONTEXTS_MIB + failures.STAYS_MIB.get(kind, 0)
    assert seen[1] <= LIMIT_MIB + FIRST_CONTEXTS_MIB + UNDONE_MIB.get(kind, 0)
    assert failures.charged_mib(container, kind) == container.world.mib_used()
    failures.free_some(process, kind, 6)
    has_room = max(container.world.mib_used(), container.used_mib()) + 8 <= LIMIT_MIB
    assert process(f"alloc({8 * MIB})")[0] == 0 or not has_room


def test_contexts_made_and_ended_again_stay_within_the_limit(container: Container) -> None:
    """What a context was charged by free memory is released at its end."""
    STARTS["nvmlInit"](container.world.state)
    process = failures.started(container)
    make = "made('cuCtxCreate_v2', 0, 0)"
    results = process(f"[(m := {make})[0] or cuda.cuCtxDestroy_v2(U64(m[1])) for _ in range(100)]")
    assert set(results) == {0}
    assert container.used_mib() == 0


def test_a_forked_child_has_no_charge_and_leaves_its_parent_s(container: Container) -> None:
    STARTS["nvmlInit"](container.world.state)
    process = failures.started(container)
    assert failures.take_all(process, "linear") != 0
    before = container.used_mib()
    child = "os._exit(alloc(1 << 20)[0]) if (child := os.fork()) == 0 else os.waitpid(child, 0)[1] >> 8"
    assert process(child) == 3  # CUDA_ERROR_NOT_INITIALIZED
    assert container.used_mib() == before
    failures.reconcile(container, process, for_s=TRUSTED_S)
    assert container.used_mib() == container.world.mib_used()


@pytest.mark.parametrize("kind", ["linear", "module", "stack", "pool"])
def test_another_program_in_the_process_begins_without_charge(container: Container, kind: str) -> None:
    STARTS["every call"](container.world.state)
    process = failures.started(container)
    failures.take_all(process, kind)
    program = "os.execv(sys.executable, [sys.executable, '-m', 'tests.cuda_calls.session'])"
    assert process(f"print(0, flush=True) or {program}") == 0
    assert process("start()") == 0
    process(f"exec({failures.PROGRAM!r}, globals())")
    failures.take_all(process, kind)
    assert container.world.mib_used() <= LIMIT_MIB + CONTEXT_MIB
    failures.reconcile(container, process, for_s=TRUSTED_S)
    assert container.used_mib() == container.world.mib_used()


@pytest.mark.parametrize("start", ["nvmlInit", "later"])
def test_imported_memory_whose_owner_has_ended(container: Container, start: str) -> None:
    """The importer keeps it on the card: NVML would say so, but the limit holds all the same."""
    if start == "nvmlInit":
        STARTS[start](container.world.state)
    owner, importer = failures.started(container), failures.started(container)
    STARTS["every call"](container.world.state)
    for _ in range(3):
        _, pointer = owner(f"alloc({100 * MIB})")
        _, handle = owner(f"ipc.export({pointer})")
        assert importer(f"ipc.take('{handle}')")[0] == 0
    owner.kill()
    failures.take_all(importer, "linear")
    assert container.world.mib_used() <= LIMIT_MIB + CONTEXT_MIB
    failures.reconcile(container, importer, for_s=TRUSTED_S)
    assert container.used_mib() == container.world.mib_used()
