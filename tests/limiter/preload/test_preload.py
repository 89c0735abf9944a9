"""LD_PRELOAD loads the library into all programs of a container: static, musl, setuid, with other libraries."""

import json
import os
import platform
import shutil
import stat
import subprocess
import sys
from itertools import permutations
from pathlib import Path

import pytest

from tests.limiter.conftest import Build, Container, environment_without_limits, skip_outside_ci
from tests.limiter.preload.test_side_effects import EXIT_CODE
from vgpu.domain.formats import region

pytestmark = pytest.mark.slow

NOBODY = 65534
MUSL = f"{platform.machine()}-linux-musl"
MUSL_COMPILE_S = 600  # the tests' timeout where `musl_programs` may be compiled first

Done = subprocess.CompletedProcess[str]


def run(container: Container, *command: str | Path, preload: str | None = None, limited: bool = True) -> Done:
    env = environment_without_limits() | container.world.environment()
    env |= container.env if limited else {}
    env |= {"LD_PRELOAD": preload} if preload else {}
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=30)


def same(container: Container, *command: str | Path) -> Done:
    """Runs a command without and with the library, whose results must be equal, and returns the former."""
    native, limited = run(container, *command, limited=False), run(container, *command)
    assert (limited.returncode, limited.stdout, limited.stderr) == (native.returncode, native.stdout, native.stderr)
    return native


def test_a_static_program_does_not_load_the_library(container: Container) -> None:
    busybox = shutil.which("busybox")
    if busybox:
        assert same(container, busybox, "sh", "-c", "echo $((6 * 7)) | cat; exit 3").returncode == 3
    assert same(container, "/sbin/ldconfig", "-p").returncode == 0


@pytest.fixture(scope="session")
def musl_programs(built: Build) -> dict[str, Path]:
    """Programs by name, each compiled once. The first compilation for musl builds its C library, in over a minute."""
    return {
        "static": built("preload/report.c", "-static", target=MUSL),
        "report": built("preload/report.c", "-dynamic", target=MUSL),
        "dlsym_user": built("preload/dlsym_user.c", "-dynamic", target=MUSL),
    }


@pytest.mark.timeout(MUSL_COMPILE_S)
def test_a_static_musl_program_does_not_load_the_library(container: Container, musl_programs: dict[str, Path]) -> None:
    assert same(container, musl_programs["static"]).returncode == EXIT_CODE


def musl_loader() -> str:
    loader = os.environ.get("MUSL_LOADER", f"/lib/ld-musl-{platform.machine()}.so.1")
    if not Path(loader).exists():
        skip_outside_ci(f"needs {loader} (Debian: the package musl)")
    return loader


@pytest.mark.timeout(MUSL_COMPILE_S)
@pytest.mark.parametrize("name", ["dlsym_user", "report"])
def test_a_dynamic_musl_program_runs_with_the_library(
    container: Container, musl_programs: dict[str, Path], name: str
) -> None:
    """Children inherit LD_PRELOAD, also those linked with musl, which has no dlvsym for our dlsym to call."""
    program = musl_programs[name]
    native = run(container, musl_loader(), program, limited=False)
    limited = run(container, musl_loader(), program)
    assert (limited.returncode, limited.stdout) == (native.returncode, native.stdout)


def test_dlsym_in_a_program_without_cuda_is_unchanged(container: Container, built: Build) -> None:
    assert same(container, built("preload/dlsym_user.c")).stdout == "puts 1, cuInit 0\n"


# Ours is last under `vgpu run`, and anywhere where somebody writes LD_PRELOAD himself.
@pytest.mark.parametrize("order", [*permutations(("ours", "allocator", "profiler"))])
def test_the_library_works_beside_others_that_hook_malloc_and_dlsym(
    container: Container, built: Build, order: tuple[str, ...]
) -> None:
    libraries = {
        "ours": Path(container.env["LD_PRELOAD"]),
        "allocator": built("preload/interposer.c", "-shared", "-fPIC"),
        "profiler": built("preload/interposer.c", "-shared", "-fPIC", "-DHOOKS_DLSYM"),
    }
    preload = ":".join(str(libraries[name]) for name in order)
    done = run(container, container.world.bin / "gpuprobe", "alloc", "40", "40", "24", preload=preload)
    assert [json.loads(line)["result"] for line in done.stdout.splitlines()] == [0, 2, 0]
    lines = [line for line in done.stderr.splitlines() if line.startswith("interposer")]
    assert done.returncode == 0
    assert len(lines) == 2
    assert "interposer 1 0" in lines


def test_a_profiler_preloaded_first_sees_every_lookup(container: Container, built: Build) -> None:
    profiler = built("preload/interposer.c", "-shared", "-fPIC", "-DHOOKS_DLSYM")
    preload = f"{profiler}:{container.env['LD_PRELOAD']}"
    done = run(container, container.world.bin / "gpuprobe", "alloc", "80", preload=preload)
    assert json.loads(done.stdout)["result"] == 2
    assert "interposer 1 1" in done.stderr


# In a mount namespace of its own: the system's preload list, and a setuid copy of a program where nosuid does not hold.
SECURE = """
set -e
mount -t tmpfs none /run && mkdir /run/vgpu && mount --bind "$FOLDER" /run/vgpu
chmod 755 /run/vgpu && chmod 666 /run/vgpu/region
cp "$PROGRAM" /run/setuid && chmod 4755 /run/setuid && cp "$PROGRAM" /run/plain
cp "$LIBRARY" /run && chmod 755 /run/libvgpushare.so /run/plain
mkdir /run/etc && cp /etc/ld.so.cache /run/etc && echo /run/libvgpushare.so > /run/etc/ld.so.preload
mount --bind /run/etc /etc
exec "$PYTHON" -S -c "$CODE" "$1"
"""

# Becomes nobody, takes a slot in the region as this very process, and becomes the program: an exec of a CUDA program.
EXEC = """
import os, struct, sys
os.setgroups([]), os.setresgid(NOBODY, NOBODY, NOBODY), os.setresuid(NOBODY, NOBODY, NOBODY)
fields = open("/proc/self/stat").read().rpartition(")")[2].split()
with open("/run/vgpu/region", "r+b") as file:
    file.seek(28), file.write(struct.pack("<I", 1))
    file.seek(SLOTS_AT)
    file.write(struct.pack("<IIQQ", os.getpid(), 0, int(fields[19]), os.stat("/proc/self/ns/pid").st_ino))
os.execv(sys.argv[1], [sys.argv[1]])
""".replace("NOBODY", str(NOBODY)).replace("SLOTS_AT", str(region.SLOTS_AT))


def become(container: Container, program: Path, name: str) -> Done:
    env = {
        "PATH": os.environ["PATH"],
        "FOLDER": str(container.folder),
        "LIBRARY": container.env["LD_PRELOAD"],
        "PROGRAM": str(program),
        "PYTHON": sys.executable,
        "CODE": EXEC,
    }
    command = ["unshare", "--mount", "/bin/sh", "-c", SECURE, "sh", name]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=30)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a setuid program of root's")
@pytest.mark.parametrize(("name", "secure", "left"), [("/run/plain", 0, 0), ("/run/setuid", 1, 1)])
def test_a_setuid_program_runs_and_leaves_the_region_alone(
    container: Container, built: Build, name: str, secure: int, left: int
) -> None:
    """A setuid program does not use the region, which other users can write. A plain one clears its former slot."""
    assert Path(container.env["LD_PRELOAD"]).stat().st_mode & stat.S_IROTH
    done = become(container, built("preload/report.c"), name)
    if "unshare" in done.stderr or "mount" in done.stderr:
        pytest.skip("mounts are not allowed here")
    assert done.returncode == EXIT_CODE, done.stderr
    assert f"secure: {secure}\n" in done.stdout
    assert "ours 0 KiB" not in done.stderr
    assert len(container.region().processes) == left
