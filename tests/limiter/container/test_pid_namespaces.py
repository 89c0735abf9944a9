"""Processes of one container in several pid namespaces, as bubblewrap, Apptainer and `unshare --pid` make them."""

import json
import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from tests.limiter.conftest import MIB, Container
from vgpu.domain.formats import region

NESTED = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child")
WITH_PROC = (*NESTED, "--mount-proc")
WITHOUT_PROC = (*NESTED, "--mount", "/bin/sh", "-ec", 'mount -t tmpfs none /proc; exec "$@"', "sh")
WRAPPERS = pytest.mark.parametrize("wrapper", [WITH_PROC, NESTED, WITHOUT_PROC], ids=["proc", "outer", "none"])
OUT_OF_MEMORY = 2

# The parent ends and leaves a child behind, which does not use CUDA.
FORKING = """
import ctypes, json, os, time
cuda, pointer = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(pointer), 0), cuda.cuCtxSetCurrent(pointer)
result = cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(60 << 20))
if os.fork():
    print(json.dumps({"result": result}), flush=True)
    os._exit(0)
time.sleep(60)
"""

Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(container: Container) -> Start:
    """Starts a probe in the container, below a wrapper."""
    if subprocess.run([*WITH_PROC, "/bin/true"], check=False, capture_output=True).returncode:
        pytest.skip("needs user namespaces")

    def wrapped(wrapper: tuple[str, ...], *arguments: str) -> subprocess.Popen[str]:
        probe = str(container.world.bin / "gpuprobe")
        return container.world.start(*wrapper, probe, *arguments, **container.env, VGPU_LOG="off")

    return wrapped


def results(process: subprocess.Popen[str], count: int) -> list[int]:
    assert process.stdout is not None
    return [json.loads(process.stdout.readline())["result"] for _ in range(count)]


@WRAPPERS
def test_memory_of_an_ended_process_is_released(container: Container, start: Start, wrapper: tuple[str, ...]) -> None:
    outer = container.session()
    outer("start()")
    for _ in range(3):
        process = start(wrapper, "alloc", "60")
        assert results(process, 1) == [0]
        process.wait()
    assert outer(f"alloc({60 * MIB})")[0] == 0
    assert start(wrapper, "alloc", "1").wait() == 0
    assert container.used_mib() <= 62


@WRAPPERS
def test_memory_of_a_killed_process_is_released(container: Container, start: Start, wrapper: tuple[str, ...]) -> None:
    process = start(wrapper, "--hold", "0", "alloc", "60")
    assert results(process, 1) == [0]
    process.kill()
    process.wait()
    deadline = time.monotonic() + 10
    while container.world.mib_used() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert results(start(wrapper, "alloc", "60"), 1) == [0]


@WRAPPERS
@pytest.mark.parametrize("other", [WITH_PROC, NESTED, WITHOUT_PROC, ()], ids=["proc", "outer", "none", "same"])
def test_memory_of_a_living_process_stays_charged(
    start: Start, wrapper: tuple[str, ...], other: tuple[str, ...]
) -> None:
    """The processes have one pid, each in its own namespace."""
    holder = start(wrapper, "--hold", "0", "alloc", "40")
    assert results(holder, 1) == [0]
    assert results(start(other, "alloc", "40", "20"), 2) == [OUT_OF_MEMORY, 0]
    assert holder.poll() is None


def test_processes_of_one_nested_namespace_see_each_other_live(container: Container, start: Start) -> None:
    """Their /proc is that of the outer namespace, where their pids are other processes' or nobody's."""
    probe = container.world.bin / "gpuprobe"
    line = f"{probe} --hold 0 alloc 40 & sleep 0.5; exec {probe} alloc 40 20"
    process = start((*NESTED, "/bin/sh", "-c", line))
    assert sorted(results(process, 3)) == [0, 0, OUT_OF_MEMORY]


def test_a_forked_child_does_not_keep_its_parents_memory_charged(start: Start, container: Container) -> None:
    python = (sys.executable, "-S", "-c", FORKING)
    process = container.world.start(*WITH_PROC, "/bin/sh", "-c", '"$@"; sleep 60', "sh", *python, **container.env)
    assert results(process, 1) == [0]
    time.sleep(0.2)
    assert results(start((), "alloc", "60"), 1) == [0]


@pytest.mark.slow
def test_more_processes_than_slots(container: Container, start: Start) -> None:
    """The slots of ended processes are used again."""
    probe = container.world.bin / "gpuprobe"
    line = f"for i in $(seq {region.MAX_PROCESSES + 8}); do {probe} alloc 1 | grep -q '\"result\":0' || exit 1; done"
    for _ in range(2):
        assert start((*WITH_PROC, "/bin/sh", "-c", line)).wait() == 0
    assert start((), "alloc", "60").wait() == 0
    assert len(container.region().processes) <= region.MAX_PROCESSES


def test_a_closed_descriptor_does_not_release_memory_in_one_namespace(container: Container) -> None:
    """Programs close descriptors that they did not open; another file may get the number then."""
    first, second = container.session(), container.session()
    first("start()"), second("start()")
    assert first(f"alloc({40 * MIB})")[0] == 0
    of_region = "[int(fd) for fd in os.listdir('/proc/self/fd') if os.path.exists(f'/proc/self/fd/{fd}') and "
    of_region += f"os.path.samefile(f'/proc/self/fd/{{fd}}', '{container.folder}/region')]"
    assert len(first(of_region)) == 1
    first(f"[os.dup2(0, fd, inheritable=False) for fd in {of_region}]")
    assert second(f"alloc({40 * MIB})")[0] == OUT_OF_MEMORY
    assert first(f"alloc({20 * MIB})")[0] == 0
    assert second(f"alloc({4 * MIB})")[0] == 0
