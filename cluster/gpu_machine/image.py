"""A container image of this machine's own Python, for programs in PyTorch, JAX and CuPy.

`local/python:1` has a shell, the interpreter, and the libraries of the system that the interpreter and its packages
need. Packages take gigabytes: a pod mounts their folders from the node (`FOLDERS`).
"""

import functools
import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from cluster import images, missing

PYTHON: Final = "docker.io/local/python:1"
INTERPRETER = "VGPU_GPU_PYTHON"  # an interpreter that has PyTorch, JAX and CuPy

_NEEDED_BY_PACKAGES: Final = ("libstdc++.so.6", "libgcc_s.so.1", "libgomp.so.1", "libz.so.1", "libatomic.so.1")
_PREFIXES: Final = (
    "import sys, sysconfig; print(sys.prefix, sys.base_prefix, sys._base_executable, sysconfig.get_path('stdlib'))"
)


@functools.cache
def interpreter() -> Path:
    """Return the interpreter that has PyTorch. Raises missing.Missing."""
    candidates = [os.environ.get(INTERPRETER), shutil.which("python3"), "/usr/bin/python3"]
    for candidate in filter(None, candidates):
        if subprocess.run([candidate, "-c", "import torch"], capture_output=True, check=False).returncode == 0:
            return Path(candidate)
    raise missing.Missing([f"an interpreter with PyTorch (set {INTERPRETER})"])


@functools.cache
def _places() -> tuple[Path, ...]:
    printed = subprocess.run([interpreter(), "-c", _PREFIXES], capture_output=True, text=True, check=True).stdout
    return tuple(map(Path, printed.split()))


def folders() -> list[Path]:
    """Return the folders that a pod mounts from the node: the packages, and the interpreter's own modules."""
    prefix, base, _, standard = _places()
    return [prefix, standard] if base == Path("/usr") else sorted({prefix, base})


def build(folder: Path) -> Path:
    """Write the image's archive into `folder` and return its path."""
    root = folder / "root"
    images.make_root(root)
    *_, base, standard = _places()
    for program in (interpreter().resolve(), base.resolve()):
        _copy(program, root, program)
    for library in _libraries([base, *standard.glob("lib-dynload/*.so")]):
        _copy(library, root, library)
    archive = folder / "python.tar"
    images.write(root, archive, PYTHON, {"Cmd": ["/bin/bash"]})
    return archive


def _libraries(programs: Iterable[Path]) -> list[Path]:
    """Return what the programs need, and what the frameworks' wheels expect of the system, under the loader's names."""
    listed = subprocess.run(["ldd", *programs], capture_output=True, text=True, check=False).stdout
    cached = subprocess.run([missing.which("ldconfig") or "ldconfig", "-p"], capture_output=True, text=True, check=True)
    wanted = "|".join(map(re.escape, _NEEDED_BY_PACKAGES))
    found = re.findall(r"=> (/\S+)", listed) + re.findall(rf"^\s*(?:{wanted}) .*=> (/\S+)", cached.stdout, re.MULTILINE)
    return sorted(set(map(Path, found)))


def _copy(source: Path, root: Path, place: Path) -> None:
    target = root / str(place).lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.exists():
        shutil.copy(source, target)
