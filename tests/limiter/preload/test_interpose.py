"""The ways to load the library: `limiter.preload`, `python -m limiter`, and the environment for other commands."""

import os
import platform
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import limiter
from limiter import LimiterError, launch
from limiter.build import toolchain
from simgpu import state_directory
from simgpu.world import World
from tests.limiter.conftest import MIB
from vgpu.domain.asks.policy import ComputePolicy, MemoryPolicy
from vgpu.domain.formats import limits, region
from vgpu.domain.formats.limits import ANY_GPU, CardLimit, Limits
from vgpu.domain.identifiers import CardUuid

ROOT = Path(limiter.__file__).parents[1]
GPU = CardUuid("GPU-8f3c2a10-1111-2222-3333-444455556666")

SEEN = """
import ctypes, os, subprocess
total = ctypes.c_size_t()
for name in ("libcuda.so.1", "libcuda.so"):
    cuda = ctypes.CDLL(name)
    cuda.cuInit(0)
    cuda.cuDeviceTotalMem_v2(ctypes.byref(total), 0)
    print(total.value >> 20)
import pynvml
pynvml.nvmlInit()
card = pynvml.nvmlDeviceGetHandleByIndex(0)
print(pynvml.nvmlDeviceGetMemoryInfo(card).total >> 20, pynvml.nvmlDeviceGetName(card))
"""


def python(world: World, program: str, *more: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *more, *(["-c", program] if program else [])],
        env={**world.environment(PYTHONPATH=str(ROOT)), **env},
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )


@pytest.fixture
def with_bare_names(world: World, tmp_path: Path) -> str:
    """A folder that also has the library names without a version, as the driver's installation has."""
    folder = tmp_path / "driver"
    folder.mkdir()
    for library in ("libcuda.so", "libnvidia-ml.so"):
        (folder / f"{library}.1").symlink_to(world.bin / f"{library}.1")
        (folder / library).symlink_to(f"{library}.1")
    return str(folder)


def test_a_process_limits_itself_under_every_name_of_the_driver(world: World, with_bare_names: str) -> None:
    done = python(world, "import limiter; limiter.preload('64MiB')" + SEEN, LD_LIBRARY_PATH=with_bare_names)
    assert done.stdout.splitlines() == ["64", "64", f"64 {state_directory.MODEL}"], done.stderr


def test_child_processes_are_limited_too(world: World) -> None:
    program = f"""
import limiter; limiter.preload("64MiB")
import subprocess
print(subprocess.run(["{world.bin}/gpuprobe", "alloc", "62", "2", "2"], capture_output=True, text=True).stdout)
"""
    done = python(world, program)
    assert [line[-2] for line in done.stdout.split()] == ["0", "0", "2"], done.stderr


def test_preload_needs_little_of_the_space_for_thread_local_variables(world: World, tmp_path: Path) -> None:
    """The library is compiled with -ftls-model=initial-exec, whose variables lie in what glibc keeps for late loads:
    1,664 bytes for all libraries together."""
    source, library = tmp_path / "large.c", tmp_path / "liblarge.so"
    source.write_text(
        '__attribute__((tls_model("initial-exec"))) __thread char large[1000]; char *at(void) { return large; }'
    )
    compiler = [*toolchain.compiler(platform.machine()), "-shared", "-fPIC"]
    subprocess.run([*compiler, str(source), "-o", str(library)], check=True)
    done = python(
        world, f"import ctypes, limiter; ctypes.CDLL({str(library)!r}); limiter.preload('64MiB'); print('done')"
    )
    assert done.stdout == "done\n", done.stderr


def test_preload_starts_an_arbiter(world: World) -> None:
    program = "import limiter, os; limiter.preload('64MiB'); print(os.path.exists(os.environ['VGPU_ARBITER_SOCKET']))"
    assert python(world, program).stdout == "True\n"


def test_the_container_s_files_are_removed_at_its_end(world: World) -> None:
    done = python(world, "import limiter, os; limiter.preload('64MiB'); print(os.environ['VGPU_LIMITS_FILE'])")
    assert done.stdout.startswith("/")
    assert not Path(done.stdout.strip()).parent.exists()


@pytest.mark.parametrize("library", ["libcuda.so.1", "libnvidia-ml.so.1"])
def test_preloading_after_the_driver_was_loaded_is_an_error(world: World, library: str) -> None:
    done = python(world, f"import ctypes; ctypes.CDLL('{library}'); import limiter; limiter.preload('64MiB')")
    assert f"LimiterError: {library} is loaded already" in done.stderr


def test_limits_in_force_are_not_replaced(world: World) -> None:
    done = python(world, "import limiter; limiter.preload('64MiB'); limiter.preload('1TiB')")
    assert "LimiterError: this process is limited already" in done.stderr


def test_the_error_about_limits_in_force_names_both(world: World) -> None:
    done = python(world, "import limiter; limiter.preload('64MiB'); limiter.preload('64MiB', cores=30)")
    assert (
        "limited already, to 67108864 bytes and 0 % of the time of each card (burst, refuse, priority 0)" in done.stderr
    )
    assert (
        "cannot be limited to 67108864 bytes and 30 % of the time of each card (fixed, refuse, priority 0)"
        in done.stderr
    )


def test_equal_limits_may_be_asked_for_again(world: World) -> None:
    program = "import limiter; limiter.preload('64MiB'); limiter.preload('64'); print('done')"
    assert python(world, program).stdout == "done\n"


WORKERS = """
import ctypes, multiprocessing, os, sys
import limiter
limiter.preload("64MiB", cores=50)

def total_mib(number):
    cuda, total = ctypes.CDLL("libcuda.so.1"), ctypes.c_size_t()
    cuda.cuInit(0), cuda.cuDeviceTotalMem_v2(ctypes.byref(total), 0)
    return total.value >> 20, os.environ["VGPU_LIMITS_FILE"]

if __name__ == "__main__":
    with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
        print(pool.map(total_mib, range(4)) == [(64, os.environ["VGPU_LIMITS_FILE"])] * 4)
"""


@pytest.mark.heavy
@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
def test_multiprocessing_s_workers_run_under_their_parent_s_limits(world: World, tmp_path: Path, method: str) -> None:
    """With spawn and forkserver, each worker runs the script's first lines again."""
    script = tmp_path / "script.py"
    script.write_text(WORKERS)
    done = python(world, "", str(script), method)
    assert (done.stdout, done.stderr) == ("True\n", "")


TOTAL = """
cuda, total = ctypes.CDLL("libcuda.so.1"), ctypes.c_size_t()
cuda.cuInit(0), cuda.cuDeviceTotalMem_v2(ctypes.byref(total), 0)
print(total.value >> 20)
"""


def start_child(code: str) -> str:
    """Code of a program that runs `code` in a child after its first line, with what that imports and limits."""
    first = "import ctypes, limiter, os, subprocess, sys; limiter.preload('64MiB')"
    return f"""{first}
{code}
done = subprocess.run([sys.executable, "-c", {first + TOTAL!r}], capture_output=True, text=True)
print(done.stdout, done.stderr)
"""


@pytest.mark.heavy
def test_limits_that_were_changed_since_are_inherited(world: World) -> None:
    """`vgpu set` changes the file; a child still asks for what its parent asked for."""
    change = """
from limiter import launch
from vgpu.domain.formats import limits
with open(os.environ["VGPU_LIMITS_FILE"], "r+b") as file:
    for offset, piece in limits.rewrite(file.read(), launch.parse("32MiB", None, None)):
        file.seek(offset), file.write(piece)
"""
    assert python(world, start_child(change)).stdout.split() == ["32"]


@pytest.mark.heavy
def test_a_child_without_the_library_is_not_taken_for_limited(world: World) -> None:
    done = python(world, start_child("del os.environ['LD_PRELOAD']"))
    assert "LimiterError: VGPU_LIMITS_FILE names the limits of this process, but" in done.stdout


@pytest.mark.heavy
def test_without_a_driver_it_warns_and_children_that_find_one_are_limited(world: World) -> None:
    child = start_child(f"os.environ['LD_LIBRARY_PATH'] = {str(world.bin)!r}")
    done = python(world, child, LD_LIBRARY_PATH="")
    assert "RuntimeWarning: no GPU can be used: libcuda.so.1 is not found" in done.stderr
    assert done.stdout.split() == ["64"], done.stdout


def test_a_script_runs_under_limits_as_it_does_alone(world: World, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(f"import sys, os\nprint(sys.argv[1:], sys.path[0] == os.path.dirname({str(script)!r})){SEEN}")
    done = python(world, "", "-m", "limiter", "--memory", "64MiB", "--", str(script), "--flag", "x")
    assert done.stdout.splitlines()[:2] == ["['--flag', 'x'] True", "64"], done.stderr


def test_a_script_with_unreadable_limits_is_not_started(world: World) -> None:
    done = python(world, "", "-m", "limiter", "--memory", "8 apples", "--", "script.py")
    assert done.returncode == 2
    assert "not an amount of memory: '8 apples'" in done.stderr


def test_a_command_s_processes_share_the_limits(world: World) -> None:
    with limiter.environment("64MiB", 100, "fixed", world.environment()) as env:
        folder = Path(env["VGPU_REGION_FILE"]).parent
        hold = subprocess.Popen([str(world.bin / "gpuprobe"), "--hold", "0", "alloc", "40"], env=env, stdout=-1)
        assert hold.stdout is not None
        hold.stdout.readline()
        lines = world.probe("alloc", "24", "2", **env)
        assert [line["result"] for line in lines] == [0, 2]
        assert region.decode((folder / "region").read_bytes()).cards[0].peak_bytes == 64 * MIB
        hold.kill()
        hold.communicate()
    assert not folder.exists()


def test_earlier_entries_of_ld_preload_stay() -> None:
    base = {"LD_PRELOAD": "/lib/libjemalloc.so", "HOME": "/", "VGPU_STATE_DIR": os.environ["VGPU_STATE_DIR"]}
    with limiter.environment("1GiB", 30, "burst", base) as env:
        assert env["LD_PRELOAD"] == f"/lib/libjemalloc.so:{limiter.library_path()}"
        assert env["HOME"] == "/"
        written = limits.decode(Path(env["VGPU_LIMITS_FILE"]).read_bytes())
        folder = Path(env["VGPU_LIMITS_FILE"]).parent
        assert folder.stat().st_mode & 0o777 == 0o700
        assert env["VGPU_ARBITER_SOCKET"] == str(folder / "arbiter" / "socket")
    assert written == Limits((CardLimit(ANY_GPU, 1 << 30, 30),), ComputePolicy.BURST)


def test_nested_limits_are_refused() -> None:
    with (
        pytest.raises(LimiterError, match="limited already"),
        limiter.environment("1GiB", 100, "fixed", dict(os.environ) | {"VGPU_LIMITS_FILE": "/x"}),
    ):
        pass


def test_limits_accept_the_usual_units() -> None:
    assert launch.parse("4Gi", 100, "fixed").cards == (CardLimit(ANY_GPU, 4 << 30, 100),)
    assert launch.parse(f"{GPU}=4GiB, 512", 30, "fixed").cards == (
        CardLimit(GPU, 4 << 30, 30),
        CardLimit(ANY_GPU, 512 << 20, 30),
    )
    assert launch.parse(None, 30, "fixed").cards == (CardLimit(ANY_GPU, None, 30),)
    assert launch.parse("4Gi", 100, "fixed", "spill").memory_policy is MemoryPolicy.SPILL
    assert launch.parse("4Gi", None, None, priority=7).priority == 7


@pytest.mark.parametrize(
    ("cores", "policy", "meant"),
    [
        (30, None, (30, ComputePolicy.FIXED)),
        (None, None, (0, ComputePolicy.BURST)),
        (None, "best-effort", (0, ComputePolicy.BEST_EFFORT)),
        (20, "burst", (20, ComputePolicy.BURST)),
        (100, "fixed", (100, ComputePolicy.FIXED)),
    ],
)
def test_without_cores_no_share_is_guaranteed(
    cores: int | None, policy: str | None, meant: tuple[int, ComputePolicy]
) -> None:
    parsed = launch.parse("4Gi", cores, policy)
    assert (parsed.cards[0].cores, parsed.compute_policy) == meant


@pytest.mark.parametrize(
    ("memory", "cores", "policy", "priority", "problem"),
    [
        (None, None, None, 0, "nothing to limit; give memory, cores or policy"),
        (None, None, None, 7, "nothing to limit; give memory, cores or policy"),
        ("", None, None, 0, "the memory is empty; give an amount, such as 8Gi, or leave it out"),
        (" ", 30, "fixed", 0, "the memory is empty"),
        ("x", 1, "fixed", 0, "not an amount of memory: 'x'; write 8Gi, 512Mi"),
        ("4Gi", 130, "burst", 0, "cores: must be a whole number from 1 to 100, percent of a card's time, and not 130"),
        ("4Gi", 0, None, 0, "cores: must be a whole number from 1 to 100"),
        ("4Gi", 30.5, None, 0, "cores: must be a whole number from 1 to 100, percent of a card's time, and not 30.5"),
        ("4Gi", True, None, 0, "percent of a card's time, and not True"),
        ("4Gi", "30", None, 0, "percent of a card's time, and not '30'"),
        ("4Gi", 1, "greedy", 0, "policy: must be one of fixed, burst, best-effort, and not 'greedy'"),
        ("4Gi", 1, "space", 0, "policy: must be one of fixed, burst, best-effort, and not 'space'"),
        ("4Gi", None, "fixed", 0, "fixed limits the time to a share; give the cores too"),
        ("4Gi", None, None, 101, "priority: must be a whole number from 0 to 100, and not 101"),
        ("4Gi", None, None, 1.5, "priority: must be a whole number from 0 to 100, and not 1.5"),
        (8192, None, None, 0, "memory: must be text, such as '8192Mi', and not the number 8192"),
    ],
)
def test_limits_that_are_refused(memory: Any, cores: Any, policy: str | None, priority: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)):
        launch.parse(memory, cores, policy, priority=priority)


def test_an_unknown_memory_policy_is_refused() -> None:
    with pytest.raises(ValueError, match="memory_policy: must be one of refuse, spill, and not 'swap'"):
        launch.parse("4Gi", None, None, "swap")
