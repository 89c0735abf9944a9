"""The C compiler: the one in the `ziglang` wheel, which links for an old glibc and for arm64 on any machine."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from limiter.build import headers

GLIBC = (2, 17)
ARCHITECTURES = ("x86_64", "aarch64")

_WARNINGS = (
    *("-Wall", "-Wextra", "-Werror", "-Wshadow", "-Wvla", "-Wconversion", "-Wsign-conversion"),
    *("-Wstrict-prototypes", "-Wmissing-prototypes"),
)


def flags() -> list[str]:
    """Return the flags with which every C file is compiled; the folders of its own headers come on top."""
    return ["-std=gnu11", "-D_GNU_SOURCE", "-fPIC", *_WARNINGS, "-isystem", str(headers.folder())]


def compiler(architecture: str) -> list[str]:
    """Return the command of the compiler for an architecture, with the oldest supported glibc."""
    target = f"{architecture}-linux-gnu.{GLIBC[0]}.{GLIBC[1]}"
    return [sys.executable, "-m", "ziglang", "cc", "-target", target, "-fno-sanitize=undefined"]


def run(command: Sequence[str]) -> None:
    """Run the compiler; exit with its status where it fails."""
    done = subprocess.run(command, check=False)
    if done.returncode:
        raise SystemExit(done.returncode)


def link_empty(architecture: str, path: Path, soname: str | None = None, needed: Sequence[Path] = ()) -> Path:
    """Link a library without code, which needs the libraries named, and return its path."""
    command = [*compiler(architecture), "-shared", "-nostdlib", "-x", "c", "/dev/null", "-x", "none"]
    options = [
        f"-Wl,-soname,{soname or path.name}",
        "-Wl,-rpath,$ORIGIN",
        "-Wl,--disable-new-dtags",
        "-Wl,--no-as-needed",
    ]
    run([*command, *options, *map(str, needed), "-o", str(path)])
    return path
