"""What the compiled files may export, import and need."""

import re
from pathlib import Path

from limiter.build import elf, function_list
from limiter.build.toolchain import GLIBC

# Exports that are not NVIDIA's: functions of the loader and of AddressSanitizer, and what the library's copies call.
_REPLACED = {"dlsym", "dlvsym", "dlopen", "dlmopen", "vgpu_bind_namespace", "vgpu_substitute", "__asan_default_options"}
# Names that musl has too; not glibc's loader. The library needs all of them: before glibc 2.34, functions that it finds
# by itself (loader/libc.h) are in the last two.
_NEEDED = {"libc.so.6", "libdl.so.2", "libpthread.so.0"}

IMPORTS = Path(__file__).parents[1] / "imports.md"
_ROW = re.compile(r"^\| `(\w+)` \| [^|]+ \| [^|]+ \|$", re.MULTILINE)


def allowed_imports() -> frozenset[str]:
    """Return the symbols that the first table of `IMPORTS` explains."""
    table, _, _ = IMPORTS.read_text().partition("\n## ")
    return frozenset(_ROW.findall(table))


def check_library(library: Path) -> None:
    """Exit unless the library exports exactly what it replaces, and needs the C library only, in an old version."""
    seen = elf.read(library.read_bytes())
    if differing := seen.exports ^ (function_list.hooked() | _REPLACED):
        raise SystemExit(f"{library.name}: exports differ from functions.h: {sorted(differing)}")
    if lacking := _NEEDED - seen.needed:
        raise SystemExit(f"{library.name}: does not need {sorted(lacking)}")
    check_imports(library)
    if unused := allowed_imports() - seen.imports:
        raise SystemExit(f"{IMPORTS.name}: the library does not import {sorted(unused)}")
    check_program(library)


def check_imports(library: Path) -> None:
    """Exit where the library imports a symbol that the table does not explain."""
    if unknown := elf.read(library.read_bytes()).imports - allowed_imports():
        raise SystemExit(
            f"{library.name}: imports {sorted(unknown)}, which a library that is loaded before may replace; "
            f"use common/system_calls.h or loader/libc.h instead, or explain the import in {IMPORTS.name}"
        )


def check_program(program: Path) -> None:
    """Exit unless a file needs the C library only, in an old version, and has no debug information (build paths)."""
    data = program.read_bytes()
    seen = elf.read(data)
    if b".debug_" in data:
        raise SystemExit(f"{program.name}: has debug information")
    if strange := seen.needed - _NEEDED:
        raise SystemExit(f"{program.name}: needs {sorted(strange)}")
    if newer := [version for version in seen.glibc if version > GLIBC]:
        raise SystemExit(f"{program.name}: needs glibc {newer}")
