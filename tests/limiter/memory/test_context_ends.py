"""Memory that belongs to the device outlives the contexts of a process, and stays charged, with NVML and without it.

NVML does not list a process without a context, although its memory is still on the card (measured on an H200, driver
580).
"""

from collections.abc import Callable
from dataclasses import replace

import pytest

from simgpu import state_directory
from simgpu.session import ProbeSession
from simgpu.world import World
from tests.limiter.conftest import MIB, Container

OUT_OF_MEMORY = 2
CONTEXT_MIB = 20
LIMIT_MIB = 256
ON_CARD = "(1).to_bytes(4, 'little') + bytes(4) + (1).to_bytes(4, 'little') + bytes(76)"
GRAPH = "(lambda g: (graphs.alloc(g, {size}), g)[1])(graphs.create())"
TAKES = {
    "current pool": ["alloc({size}, 'cuMemAllocAsync')[0]"],
    "own pool": [
        "globals().update(pool=U64()) or cuda.cuMemPoolCreate(ctypes.byref(pool), " + ON_CARD + ")",
        "made('cuMemAllocFromPoolAsync', ctypes.c_size_t({size}), pool, None)[0]",
    ],
    "physical memory": ["vmm.create({size})[0]"],
    "graph": ["graphs.launch(graphs.instantiate(" + GRAPH + ")[1])"],
}


@pytest.fixture
def container(make_world: Callable[..., World], make_container: Callable[..., Container]) -> Container:
    cards = tuple(replace(card, context_mib=CONTEXT_MIB) for card in state_directory.make_cards(2))
    return replace(make_container(f"{LIMIT_MIB + CONTEXT_MIB}MiB"), world=make_world(cards))


@pytest.fixture
def process(container: Container) -> ProbeSession:
    session = container.session()
    assert session("start()") == 0
    return session


def take(process: ProbeSession, kind: str, mib: int) -> None:
    for call in TAKES[kind]:
        assert process(call.replace("{size}", str(mib * MIB))) == 0


@pytest.mark.parametrize("nvml_fails", [False, True])
@pytest.mark.parametrize("call", ["Release", "Reset"])
@pytest.mark.parametrize("kind", TAKES)
def test_memory_of_the_device_stays_charged_after_the_last_context(
    container: Container, process: ProbeSession, kind: str, call: str, *, nvml_fails: bool
) -> None:
    take(process, kind, 128)
    if nvml_fails:
        state_directory.inject_faults(container.world.state, ("nvmlDeviceGetComputeRunningProcesses_v3", 999))
    assert process(f"cuda.cuDevicePrimaryCtx{call}_v2(0)") == 0
    assert container.world.mib_used() == 128
    assert container.used_mib() == 128 + (CONTEXT_MIB if nvml_fails else 0)
    state_directory.inject_faults(container.world.state)
    other = container.session()
    assert other("start()") == 0
    assert other(f"alloc({130 * MIB})")[0] == OUT_OF_MEMORY
    assert other(f"alloc({80 * MIB})")[0] == 0


@pytest.mark.parametrize("kind", TAKES)
def test_the_next_context_counts_it_once(container: Container, process: ProbeSession, kind: str) -> None:
    take(process, kind, 128)
    assert process("cuda.cuDevicePrimaryCtxRelease_v2(0)") == 0
    assert process("start()") == 0
    assert container.used_mib() == container.world.mib_used() == 128 + CONTEXT_MIB
    assert process(f"alloc({128 * MIB})")[0] == 0
    assert process(f"alloc({2 * MIB})")[0] == OUT_OF_MEMORY


@pytest.mark.parametrize("kind", [*TAKES, "plain"])
def test_a_spare_reference_and_another_card_s_context_take_no_charge_with_them(
    container: Container, process: ProbeSession, kind: str
) -> None:
    if kind == "plain":
        assert process(f"alloc({128 * MIB})")[0] == 0
    else:
        take(process, kind, 128)
    assert process("made('cuDevicePrimaryCtxRetain', 0)[0] or made('cuDevicePrimaryCtxRetain', 1)[0]") == 0
    state_directory.inject_faults(container.world.state, ("nvmlDeviceGetComputeRunningProcesses_v3", 999))
    assert process("cuda.cuDevicePrimaryCtxRelease_v2(0) or cuda.cuDevicePrimaryCtxRelease_v2(1)") == 0
    assert container.used_mib() == 128 + CONTEXT_MIB
    assert process(f"alloc({130 * MIB})")[0] == OUT_OF_MEMORY


def test_the_last_reference_is_known_after_many(container: Container, process: ProbeSession) -> None:
    assert process(f"alloc({100 * MIB})")[0] == 0
    assert process("[made('cuDevicePrimaryCtxRetain', 0)[0] for _ in range(7)]") == [0] * 7
    assert process("[cuda.cuDevicePrimaryCtxRelease_v2(0) for _ in range(7)]") == [0] * 7
    assert container.used_mib() == 100 + CONTEXT_MIB
    assert process("cuda.cuDevicePrimaryCtxRelease_v2(0)") == 0
    assert container.used_mib() == 0
