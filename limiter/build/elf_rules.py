"""What the compiled files may export and need."""

from pathlib import Path

from limiter.build import elf, function_list
from limiter.build.toolchain import GLIBC

_NEEDED = {"libc.so.6", "libdl.so.2", "libpthread.so.0"}  # names that musl has too; not glibc's loader


_LOADER = {"dlsym", "dlvsym", "dlopen", "dlmopen", "vgpu_bind_namespace", "vgpu_substitute"}


def check_library(library: Path) -> None:
    """Exit unless the library exports exactly the function list, and needs the C library only, in an old version."""
    seen = elf.read(library.read_bytes())
    if differing := seen.exports ^ (function_list.hooked() | _LOADER):
        raise SystemExit(f"{library.name}: exports differ from functions.h: {sorted(differing)}")
    check_program(library)


def check_program(program: Path) -> None:
    """Exit unless a file needs the C library only, in an old version."""
    seen = elf.read(program.read_bytes())
    if strange := seen.needed - _NEEDED:
        raise SystemExit(f"{program.name}: needs {sorted(strange)}")
    if newer := [version for version in seen.glibc if version > GLIBC]:
        raise SystemExit(f"{program.name}: needs glibc {newer}")
