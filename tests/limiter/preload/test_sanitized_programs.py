"""Programs that were built with gcc's sanitizers, which replace functions of the C library, run under the limiter."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.limiter.conftest import MIB, Build, Container, environment_without_limits, skip_outside_ci
from tests.limiter.preload.test_preload import become

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
RUNTIMES = {"address": "asan", "thread": "tsan", "undefined": "ubsan", "leak": "lsan"}
KINDS = [(sanitizer, linking) for sanitizer in RUNTIMES for linking in ("shared", "static")]
KINDS.remove(("leak", "static"))  # gcc 12's ends before main() without the limiter, too

Done = subprocess.CompletedProcess[str]
Compile = Callable[[str, str], Path]


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Compile:
    """Compiles sanitized.c with a sanitizer whose runtime is shared or static, once each."""
    folder = tmp_path_factory.mktemp("sanitized")

    def compile_once(sanitizer: str, linking: str) -> Path:
        program = folder / f"{sanitizer}-{linking}"
        if not program.exists():
            static = [f"-static-lib{RUNTIMES[sanitizer]}"] if linking == "static" else []
            command = ["gcc", "-g", "-w", f"-fsanitize={sanitizer}", *static, str(HERE / "sanitized.c")]
            subprocess.run([*command, "-ldl", "-lpthread", "-o", str(program)], check=True)
        return program

    if shutil.which("gcc") is None:
        skip_outside_ci("needs gcc with its sanitizers")
    return compile_once


def run(container: Container, *command: str | Path, **more: str) -> Done:
    env = environment_without_limits() | container.world.environment() | more
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=50)


@pytest.mark.parametrize(("sanitizer", "linking"), KINDS)
def test_a_sanitized_program_runs_as_it_does_alone(
    container: Container, compiled: Compile, sanitizer: str, linking: str
) -> None:
    program = compiled(sanitizer, linking)
    native, limited = run(container, program), run(container, program, **container.env)
    assert (native.returncode, native.stdout, native.stderr) == (0, "hello 1\n", "")
    assert (limited.returncode, limited.stdout, limited.stderr) == (0, "hello 1\n", "")


@pytest.mark.parametrize(("sanitizer", "linking"), KINDS)
def test_a_sanitized_cuda_program_is_limited(
    container: Container, compiled: Compile, sanitizer: str, linking: str
) -> None:
    done = run(container, compiled(sanitizer, linking), "cuda", **container.env, VGPU_LOG="off")
    assert done.stdout == "hello 1\nstart 0, 40 MiB 0, 40 MiB more 2, free 0\n"
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(("sanitizer", "linking"), KINDS)
def test_an_exec_of_a_sanitized_program_clears_the_former_image(
    container: Container, compiled: Compile, sanitizer: str, linking: str
) -> None:
    """The constructor then works with the region, before the program's own start."""
    process = container.session()
    process("start()")
    process(f"alloc({60 * MIB})")
    program = str(compiled(sanitizer, linking))
    stdout, _ = process.process.communicate(f"os.execv({program!r}, [{program!r}])\n", timeout=50)
    assert (process.process.returncode, stdout) == (0, "hello 1\n")
    assert container.region().processes == ()


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a file over /etc/ld.so.preload")
@pytest.mark.parametrize(("sanitizer", "linking"), KINDS)
def test_a_sanitized_program_runs_under_the_system_s_preload_list(
    container: Container, compiled: Compile, sanitizer: str, linking: str
) -> None:
    done = become(container, compiled(sanitizer, linking), "/run/plain")
    if "unshare" in done.stderr or "mount" in done.stderr:
        pytest.skip("mounts are not allowed here")
    assert (done.returncode, done.stdout, done.stderr) == (0, "hello 1\n", "")


def test_another_library_before_the_address_sanitizer_is_still_an_error(
    container: Container, compiled: Compile, built: Build
) -> None:
    """interposer.c defines malloc(), which is why the sanitizer checks."""
    program, other = compiled("address", "shared"), built("preload/interposer.c", "-shared", "-fPIC")
    for preload in (f"{other}", f"{other}:{container.env['LD_PRELOAD']}", f"{container.env['LD_PRELOAD']}:{other}"):
        done = run(container, program, **container.env | {"LD_PRELOAD": preload})
        assert done.returncode == 1
        assert "ASan runtime does not come first" in done.stderr


def test_the_user_s_options_of_the_address_sanitizer_win(container: Container, compiled: Compile) -> None:
    done = run(container, compiled("address", "shared"), **container.env, ASAN_OPTIONS="verify_asan_link_order=1")
    assert done.returncode == 1
