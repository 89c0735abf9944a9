"""Every class of memory while NVML fails: never beyond the limit, and right again when NVML answers."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from simgpu import state_directory, usage
from simgpu.session import ProbeSession
from simgpu.state_directory import NvmlFailures
from simgpu.world import World
from tests.limiter.conftest import MIB, Container

LIMIT_MIB, CONTEXT_MIB, MODULE_MIB = 512, 20, 4
RESULTS = (1, 2, 3, 4, 10, 15, 20, 999)  # of nvmlReturn_t: uninitialized, invalid, not supported, no permission, ...
QUIET_S = 0.2  # NVML is asked again within this time after it answers


@dataclass(frozen=True, slots=True)
class MemoryClass:
    """Expressions of tests.cuda_calls.session that take `{size}` bytes (a result and a handle), and free `{handle}`."""

    take: str
    free: str


CLASSES = {
    "linear": MemoryClass("alloc({size})", "free({handle})"),
    "pieces": MemoryClass("alloc(700000)", "free({handle})"),
    "pitched": MemoryClass(
        "(lambda p, w: (cuda.cuMemAllocPitch_v2(ctypes.byref(p), ctypes.byref(w), ctypes.c_size_t({size} >> 10),"
        " ctypes.c_size_t(1024), 4), p.value))(U64(), ctypes.c_size_t())",
        "free({handle})",
    ),
    "array": MemoryClass("arrays.plain(1024, {size} >> 14)", "arrays.destroy({handle})"),
    "small array": MemoryClass("arrays.plain(256, 128)", "arrays.destroy({handle})"),
    "mipmapped": MemoryClass(
        "arrays.cube(1024, {size} >> 15, 0, levels=2)", "arrays.destroy({handle}, mipmapped=True)"
    ),
    "managed": MemoryClass("alloc({size}, 'cuMemAllocManaged')", "free({handle})"),
    "pool": MemoryClass(
        "alloc({size}, 'cuMemAllocAsync')", "free({handle}, 'cuMemFreeAsync') or cuda.cuCtxSynchronize()"
    ),
    "own pool": MemoryClass(
        "pools.alloc({size}, globals().setdefault('own_pool', pools.create()[1]))",
        "free({handle}, 'cuMemFreeAsync') or cuda.cuCtxSynchronize()",
    ),
    "pool of its own": MemoryClass(
        "(lambda pool: (pools.alloc({size}, pool)[0] or pools.destroy(pool) * 0, pool))(pools.create()[1])",
        "0",
    ),
    "physical": MemoryClass("vmm.create({size} + (-{size} % (2 << 20)))", "vmm.release({handle})"),
    "mapped": MemoryClass(
        "(lambda made: (made[0], made[0] or (vmm.mapped(made[1], {size}), vmm.release(made[1]))[0]))"
        "(vmm.create({size}))",
        "vmm.unmap({handle}, {size})",
    ),
    "graph": MemoryClass(
        "(lambda g: (graphs.alloc(g, {size}),"
        " (lambda i: (i[0] or graphs.launch(i[1]), i[1]))(graphs.instantiate(g)))[1])"
        "(graphs.create())",
        "graphs.destroy({handle})",
    ),
    "module": MemoryClass("made('cuModuleLoadData', b'')", "cuda.cuModuleUnload(U64({handle}))"),
    "library": MemoryClass(
        "(lambda l: (made('cuLibraryGetModule', U64(l))[0], l))"
        "(made('cuLibraryLoadData', b'', None, None, 0, None, None, 0)[1])",
        "cuda.cuLibraryUnload(U64({handle}))",
    ),
    "context": MemoryClass("made('cuCtxCreate_v2', 0, 0)", "cuda.cuCtxDestroy_v2(U64({handle}))"),
    "stack": MemoryClass("(kernels.set_stack(1024 + 512 * (1 + len(held))), 1)", "kernels.set_stack(1024)"),
    "heap": MemoryClass(
        "(kernels.set_limit(kernels.HEAP_SIZE, {size} * (1 + len(held))), 1)",
        "kernels.set_limit(kernels.HEAP_SIZE, 8 << 20)",
    ),
}
CLASSES |= {
    "streams": MemoryClass(
        "(lambda s: (lambda p: (cuda.cuMemAllocAsync(ctypes.byref(p), ctypes.c_size_t({size}),"
        " ctypes.c_void_p(s[len(held) % 3])), p.value))(U64()))"
        "(globals().setdefault('streams', [launches.stream() for _ in range(3)]))",
        "cuda.cuMemFreeAsync(U64({handle}), ctypes.c_void_p(streams[0])) or cuda.cuCtxSynchronize()",
    ),
    "sparse array": MemoryClass(
        "(lambda a, m: (m[0] or arrays.map_memory(a, m[1]) or vmm.release(m[1]), a))"
        "(arrays.cube(1024, 1024, 0, arrays.SPARSE)[1], vmm.create({size}, usage=arrays.TILE_POOL))",
        "arrays.destroy({handle})",
    ),
    "external": MemoryClass(
        "(lambda m: (m[0] or (i := external.take(vmm.export(m[1])[1], {size}))[0] or vmm.release(m[1]),"
        " 0 if m[0] else i[1]))(vmm.create({size}, handle_types=vmm.POSIX_FD))",
        "external.destroy({handle})",
    ),
}
SIZE = 40 * MIB

# MiB by which the card's peak may exceed the limit: what is made, measured and undone, also while NVML answers.
UNDONE_MIB = {"graph": 32, "module": MODULE_MIB, "library": 4 * MODULE_MIB}
# MiB of a refused first use of a library, which stays until the program unloads the library: two in each process.
STAYS_MIB = {"library": 4 * MODULE_MIB}

PROGRAM = """
held = []
def take_until_refused(expression, most=200):
    while len(held) < most:
        result, handle = eval(expression)
        if result: return result
        held.append(handle)
    return 0
def free_last(expression):
    return eval(expression.replace('HANDLE', str(held.pop())))
"""


@pytest.fixture
def container(make_world: Callable[..., World], make_container: Callable[..., Container]) -> Container:
    cards = tuple(
        replace(card, context_mib=CONTEXT_MIB, module_kib=MODULE_MIB * 1024) for card in state_directory.make_cards(1)
    )
    return replace(make_container(f"{LIMIT_MIB}MiB"), world=make_world(cards))


def started(container: Container) -> ProbeSession:
    process = container.session()
    assert process("start()") == 0
    process(f"exec({PROGRAM!r}, globals())")
    return process


def take_all(process: ProbeSession, kind: str) -> int:
    expression = CLASSES[kind].take.replace("{size}", str(SIZE))
    return int(process(f"take_until_refused({expression!r})"))


def free_some(process: ProbeSession, kind: str, count: int) -> None:
    expression = CLASSES[kind].free.replace("{size}", str(SIZE)).replace("{handle}", "HANDLE")
    for _ in range(count):
        process(f"free_last({expression!r}) if held else 0")


def peak_mib(container: Container) -> int:
    return usage.peak_bytes_by_card(container.world.state)[container.world.cards[0].uuid] // MIB


def reconcile(container: Container, *processes: ProbeSession, for_s: float = QUIET_S) -> None:
    """NVML answers again, and each process looks at its memory until charges are right, after `for_s`."""
    state_directory.inject_faults(container.world.state)
    deadline = time.monotonic() + for_s
    while time.monotonic() < deadline:
        for process in processes:
            process("info()")
        time.sleep(0.02)


def managed_mib(container: Container) -> int:
    """MiB of the charge that NVML does not count: managed memory, and heaps of device code that are not taken."""
    return sum(size for process in container.region().processes for _, size in process.managed_bytes) // MIB


def charged_mib(container: Container, kind: str) -> int:
    """MiB of the charge that are on the card. NVML counts mapped tiles for no process, but they are there."""
    return container.used_mib() - (0 if kind == "sparse array" else managed_mib(container))


@pytest.mark.heavy
@pytest.mark.parametrize(
    "percent", [pytest.param(0, marks=pytest.mark.slow), pytest.param(50, marks=pytest.mark.slow), 100]
)
@pytest.mark.parametrize("kind", CLASSES)
def test_memory_taken_while_nvml_fails(container: Container, kind: str, percent: int) -> None:
    process, other = started(container), started(container)
    state_directory.inject_nvml_failures(container.world.state, NvmlFailures(results=RESULTS, percent=percent, seed=1))
    take_all(process, kind)
    free_some(process, kind, 3)
    take_all(other, kind)
    take_all(process, kind)
    assert container.world.mib_used() <= LIMIT_MIB + STAYS_MIB.get(kind, 0)
    assert peak_mib(container) <= LIMIT_MIB + UNDONE_MIB.get(kind, 0)
    reconcile(container, process, other)
    assert charged_mib(container, kind) == container.world.mib_used()
    free_some(process, kind, 6)
    assert process(f"alloc({8 * MIB})")[0] == 0
