"""Programs whose preloaded libraries stand in for functions of the C library have their limits, and nothing hangs.

A clock as libfaketime's, and, one by one and all together, functions that do nothing and answer what they like.
"""

import platform
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import limiter
from limiter.build import elf, toolchain
from simgpu.session import ProbeSession
from tests.arbiter.conftest import built_arbiter, idle_node
from tests.limiter.compute.test_tenants import Tenants, reached, tenants
from tests.limiter.conftest import MIB, Build, Container
from vgpu.domain.formats import region

pytestmark = pytest.mark.slow

__all__ = ["built_arbiter", "idle_node", "tenants"]  # fixtures

HERE = Path(__file__).parent
OUT_OF_MEMORY = 2
KERNEL_US, KERNELS = 500, 600
GPU_S = KERNEL_US * KERNELS / 1e6
CORES = 20
ALLOWANCE = 0.06  # the burst cap of 10 ms, work in flight at the end, and some for a busy machine
HANG_S = 30
CLOCKS = ("fast", "slow", "frozen", "ahead", "behind")
DATA = {"_r_debug", "_dl_debug_addr", "environ"}  # imports that are no functions

# What the library called once, and what decides about time, locks and shared memory in any C program.
CALLED_ONCE = (
    *("access", "clock_gettime", "clock_nanosleep", "close", "epoll_create1", "epoll_ctl", "fclose", "fcntl", "fgets"),
    *(
        "flock",
        "fopen",
        "fstat",
        "__fxstat",
        "getauxval",
        "getenv",
        "getpid",
        "gettimeofday",
        "kill",
        "lseek",
        "memchr",
    ),
    *("memmove", "mmap", "mprotect", "mremap", "munmap", "nanosleep", "open", "openat", "poll", "ppoll", "prctl"),
    *("pread", "pthread_atfork", "pthread_attr_init", "pthread_attr_setdetachstate", "pthread_attr_setstacksize"),
    *("pthread_detach", "pthread_mutex_consistent", "pthread_mutex_destroy", "pthread_mutex_init"),
    *("pthread_mutex_lock", "pthread_mutex_trylock", "pthread_mutex_unlock", "pthread_mutexattr_init"),
    *("pthread_mutexattr_setpshared", "pthread_mutexattr_setrobust", "pthread_setcancelstate", "pthread_sigmask"),
    *("pthread_tryjoin_np", "read", "readlink", "secure_getenv", "sigfillset", "snprintf", "socket", "stat", "strdup"),
    *("strrchr", "strtol", "strtoul", "strtoull", "syscall", "sysconf", "time", "usleep", "__xstat", "dladdr"),
    *("dlclose", "sched_yield", "dl_iterate_phdr"),
)

Make = Callable[..., Container]


def imports() -> set[str]:
    return set(elf.read(limiter.library_path().read_bytes()).imports) - DATA


@pytest.fixture(scope="session")
def replaced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library that stands in for everything that the limiter imports, and for CALLED_ONCE."""
    if platform.machine() != "x86_64":
        pytest.skip("replaced.c is for x86-64")
    folder = tmp_path_factory.mktemp("replaced")
    lines = [f"REPLACED({number}, {name})" for number, name in enumerate(sorted(imports() | set(CALLED_ONCE)))]
    names = folder / "names"
    names.write_text("\n".join(lines))
    command = [
        *toolchain.compiler("x86_64"),
        "-O1",
        "-D_GNU_SOURCE",
        "-fPIC",
        "-shared",
        f'-DNAMES="{names}"',
        "-mgeneral-regs-only",
    ]
    subprocess.run([*command, str(HERE / "replaced.c"), "-ldl", "-o", str(folder / "replaced.so")], check=True)
    return folder / "replaced.so"


def started(container: Container, before: Path, **more: str) -> ProbeSession:
    """A session in which `before` is loaded before the limiter."""
    session = container.session(LD_PRELOAD=f"{before}:{limiter.library_path()}", VGPU_LOG="off", **more)
    assert session("start()") == 0
    return session


def share_of(session: ProbeSession) -> float:
    """The share of the card that kernels get, measured by this process's clock."""
    session(f"launches.longest({KERNEL_US}, 20)")
    begun = time.monotonic()
    session.tell(f"launches.longest({KERNEL_US}, {KERNELS})")
    session.answer()
    return GPU_S / (time.monotonic() - begun)


def assert_memory_is_limited(session: ProbeSession) -> None:
    assert session(f"alloc({40 * MIB})")[0] == 0
    assert session(f"alloc({40 * MIB})")[0] == OUT_OF_MEMORY
    assert session("info()")[2] == 64 * MIB


@pytest.mark.timeout(HANG_S)
@pytest.mark.parametrize("way", CLOCKS)
def test_a_false_clock_changes_neither_limit(make_container: Make, built: Build, way: str) -> None:
    clock = built("robustness/false_clock.c", "-shared", "-fPIC")
    session = started(make_container("64MiB", CORES), clock, FALSE_CLOCK=way)
    assert_memory_is_limited(session)
    share = share_of(session)
    assert CORES / 100 * 0.5 <= share <= CORES / 100 + ALLOWANCE


@pytest.mark.timeout(2 * HANG_S)
@pytest.mark.parametrize("way", CLOCKS)
def test_a_false_clock_takes_nothing_from_a_neighbour(tenants: Tenants, built: Build, way: str) -> None:
    clock = built("robustness/false_clock.c", "-shared", "-fPIC")
    other = tenants.add(80)
    liar = tenants.add(CORES, LD_PRELOAD=f"{clock}:{limiter.library_path()}", FALSE_CLOCK=way)

    def gpu_s() -> float:
        (card,) = region.decode((liar.folder.folder / "region").read_bytes()).cards
        return card.gpu_ns / 1e9

    def is_kept() -> bool:
        liar.session.tell(f"launches.longest({KERNEL_US}, {4 * KERNELS})")
        tenants.feed(other, seconds=0.2)
        begun, before = time.monotonic(), gpu_s()
        share = tenants.feed(other)[0]
        own = (gpu_s() - before) / (time.monotonic() - begun)
        liar.session.answer()
        assert own <= CORES / 100 + ALLOWANCE
        return share >= 0.6 * 0.8

    assert reached(is_kept)


def answers() -> list[tuple[str, int]]:
    return [
        (name, answer) for name in sorted(imports()) for answer in (-1, 0, 42) if not is_pointer_made_up(name, answer)
    ]


def is_pointer_made_up(name: str, answer: int) -> bool:
    """A false address of new memory ends the program, whoever asked for it."""
    return name in {"malloc", "calloc", "realloc"} and answer != 0


def assert_limits_hold(container: Container, replaced: Path, name: str, answer: int) -> None:
    session = container.session(
        LD_PRELOAD=f"{replaced}:{limiter.library_path()}",
        VGPU_LOG="off",
        REPLACED_NAME=name,
        REPLACED_ANSWER=str(answer),
    )
    if session("start()") == OUT_OF_MEMORY:
        return  # everything is refused
    results = [session(f"alloc({40 * MIB})")[0] for _ in range(2)]
    assert results in ([0, OUT_OF_MEMORY], [OUT_OF_MEMORY] * 2)
    assert container.world.mib_used() <= 64
    assert share_of(session) <= CORES / 100 + ALLOWANCE


@pytest.mark.timeout(HANG_S)
@pytest.mark.parametrize(("name", "answer"), answers())
def test_no_function_that_the_library_imports_can_loosen_a_limit(
    make_container: Make, replaced: Path, name: str, answer: int
) -> None:
    assert_limits_hold(make_container("64MiB", CORES), replaced, name, answer)


@pytest.mark.timeout(HANG_S)
def test_all_functions_together_cannot_loosen_a_limit(make_container: Make, replaced: Path) -> None:
    assert_limits_hold(make_container("64MiB", CORES), replaced, "all", 0)


@pytest.mark.timeout(HANG_S)
@pytest.mark.parametrize("answer", [-1, 0, 42])
@pytest.mark.parametrize("name", CALLED_ONCE)
def test_functions_that_the_library_called_once_are_not_called(
    make_container: Make, replaced: Path, name: str, answer: int
) -> None:
    container = make_container("64MiB", CORES)
    session = container.session(
        LD_PRELOAD=f"{replaced}:{limiter.library_path()}",
        VGPU_LOG="off",
        REPLACED_NAME=name,
        REPLACED_ANSWER=str(answer),
    )
    assert session("start()") == 0
    assert_memory_is_limited(session)
