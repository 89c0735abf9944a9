"""dlsym, dlvsym and cuGetProcAddress return what they return without the library, but wrappers for driver functions."""

import ctypes
import platform
import re
import subprocess
from pathlib import Path

import pytest

from limiter import LIBRARY, build
from limiter.build import elf, elf_rules, function_list, toolchain
from simgpu.world import World
from tests.limiter.conftest import Container

HERE = Path(__file__).parent
ALL_SYMBOLS = ("cuMemAlloc", "cuMemFree", "cuMemGetInfo", "cuDeviceTotalMem", "cuMemAllocAsync", "cuGetProcAddress")


def compile_c(output: Path, source: Path, *options: str) -> Path:
    command = [
        *toolchain.compiler(platform.machine()),
        "-O1",
        "-fPIC",
        *options,
        str(source),
        "-ldl",
        "-o",
        str(output),
    ]
    subprocess.run(command, check=True)
    return output


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("programs")
    compile_c(folder / "ask", HERE / "ask.c")
    compile_c(folder / "libnext.so", HERE / "next.c", "-shared")
    other = folder / "other.c"
    other.write_text("int cuMemAlloc_v2(void) { return 7; }\n")
    compile_c(folder / "libother.so", other, "-shared")
    return folder


def ask(world: World, programs: Path, *preloads: Path | str) -> list[str]:
    done = subprocess.run(
        [programs / "ask"],
        env=world.environment(
            LD_PRELOAD=":".join(map(str, preloads)),
            LD_LIBRARY_PATH=f"{world.bin}:{programs}",
            VGPU_MEMORY_LIMIT="64MiB",
        ),
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    return done.stdout.splitlines()


def test_dlsym_finds_each_name_in_its_usual_library(world: World, shim: Path, programs: Path) -> None:
    assert ask(world, programs, shim) == [
        "default cuMemAlloc_v2 nowhere",  # the driver is not loaded yet
        "next cuMemAlloc_v2 nowhere",
        f"handle cuMemAlloc_v2 {LIBRARY}",
        "handle cuDriverGetVersion libcuda.so.1",
        "handle cublasCreate nowhere",
        f"default cuMemAlloc_v2 {LIBRARY}",
        f"next cuMemAlloc_v2 {LIBRARY}",
        "default curl_easy_init nowhere",
        "default puts libc.so.6",
        "other cuMemAlloc_v2 libother.so",  # one of our names in a library that is not the driver
        "end",
    ]


@pytest.mark.parametrize("first", [True, False])
def test_a_driver_function_of_another_preloaded_library_is_found(
    world: World, shim: Path, programs: Path, *, first: bool
) -> None:
    """A library that stands in for the driver, before or behind ours; RTLD_DEFAULT finds the one that is loaded."""
    other = programs / "libother.so"
    lines = ask(world, programs, *((shim, other) if first else (other, shim)))
    assert lines[0] == "default cuMemAlloc_v2 libother.so"
    if not first:
        assert lines[1] == "next cuMemAlloc_v2 libother.so"


@pytest.mark.parametrize("first", [True, False])
def test_rtld_next_of_another_preloaded_library_is_unchanged(
    world: World, shim: Path, programs: Path, *, first: bool
) -> None:
    preloads = (shim, programs / "libnext.so") if first else (programs / "libnext.so", shim)
    lines = ask(world, programs, *preloads)
    assert lines[-1] == "next: end"
    assert f"handle cuMemAlloc_v2 {LIBRARY}" in lines


def test_a_driver_function_found_by_library_path_is_wrapped(container: Container) -> None:
    process = container.session()
    process("start()")
    path = container.world.bin / "libcuda.so.1"
    assert process(f"ctypes.CDLL({str(path)!r}).cuMemAlloc_v2(None, 1) == 1")
    shown = process(f"globals().update(cuda=ctypes.CDLL({str(path)!r})) or info()")
    assert shown[2] == 64 << 20


@pytest.mark.heavy
@pytest.mark.parametrize("version", [3020, 7000, 11030, 12000, 13000])
@pytest.mark.parametrize("flags", [0, 1, 2])
def test_cu_get_proc_address_returns_the_driver_s_results(container: Container, version: int, flags: int) -> None:
    """Equal result and status for every version, and the driver's address or our wrapper of that function."""
    native, ours = container.world.session(), container.session()
    native("start()"), ours("start()")
    base = {who: who("symbol('cuInit')") for who in (native, ours)}
    for symbol in (*ALL_SYMBOLS, "cuInit", "cuNothing"):
        expected = native(f"proc({symbol!r}, {version}, {flags})")
        seen = ours(f"proc({symbol!r}, {version}, {flags})")
        assert (seen[0], seen[2]) == (expected[0], expected[2]), symbol
        if expected[1] is None:
            assert seen[1] is None
        elif seen[1] - base[ours] != expected[1] - base[native]:
            names = [name for name in function_list.hooked() if native(f"symbol({name!r})") == expected[1]]
            assert seen[1] in [ours(f"symbol({name!r})") for name in names], symbol


def test_every_export_of_the_library_is_in_the_table(shim: Path) -> None:
    elf_rules.check_library(shim)
    loaded = ctypes.CDLL(str(shim))
    assert all(hasattr(loaded, name) for name in function_list.hooked())


@pytest.mark.parametrize("call", ["nanosleep(0, 0)", "pthread_cond_timedwait(0, 0, 0)", "read(0, 0, 0)", "getpid()"])
def test_a_library_with_an_import_that_is_not_explained_is_refused(tmp_path: Path, call: str) -> None:
    source = tmp_path / "calls.c"
    source.write_text(
        f"#include <pthread.h>\n#include <time.h>\n#include <unistd.h>\nvoid f(void) {{ (void){call}; }}\n"
    )
    library = compile_c(tmp_path / "libcalls.so", source, "-shared", "-w", "-Wno-unused-result")
    with pytest.raises(SystemExit, match=call.partition("(")[0]):
        elf_rules.check_imports(library)


@pytest.mark.parametrize("architecture", toolchain.ARCHITECTURES)
def test_the_c_library_has_the_functions_that_are_looked_up_in_it(tmp_path: Path, architecture: str) -> None:
    """By the oldest glibc. A function that is missing there is linked into the program that calls it."""
    source = tmp_path / "all.c"
    source.write_text('#include "loader/libc.h"\n#define F(name) (void *)&name,\nvoid *all[] = {LIBC_FUNCTIONS(F)};\n')
    options = ["-D_GNU_SOURCE", "-fPIC", "-shared", f"-I{build.SOURCES}", str(source), "-ldl", "-lpthread"]
    library = tmp_path / "liball.so"
    subprocess.run([*toolchain.compiler(architecture), *options, "-o", str(library)], check=True)
    listed = (build.SOURCES / "loader" / "libc.h").read_text()
    names = set(re.findall(r"\bF\((\w+)\)", listed.partition("LIBC_NUMBER")[0]))
    assert "dlsym" in names
    assert names - elf.read(library.read_bytes()).imports <= {"pthread_atfork"}  # process/fork.c
