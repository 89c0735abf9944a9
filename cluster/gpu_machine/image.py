"""A container image of this machine's own Python, for programs in PyTorch, JAX and CuPy.

`local/python:1` has a shell, the interpreter, and the libraries of the system that the interpreter and its packages
need. Packages take gigabytes: a pod mounts their folders from the node (`FOLDERS`).
"""

import functools
import os
import shutil
import subprocess
from pathlib import Path
from typing import Final, NamedTuple

from cluster import images, missing

PYTHON: Final = "docker.io/local/python:1"
CUDA: Final = Path("/usr/local/cuda").resolve()  # its compiler
INTERPRETER = "VGPU_GPU_PYTHON"  # an interpreter that has PyTorch, JAX and CuPy

_SYSTEM: Final = (Path("/lib"), Path("/usr/lib"), Path("/lib64"), Path("/usr/lib64"))
_DRIVER: Final = ("libcuda", "libnvidia")  # comes into the container with the card
_PACKAGES: Final = ("torch", "jaxlib", "jax_cuda13_plugin", "cupy", "numpy", "numpy.libs")
_PREFIXES: Final = (
    "import sys, sysconfig; print(sys.prefix, sys.base_prefix, sys._base_executable, sysconfig.get_path('stdlib'))"
)


@functools.cache
def interpreter() -> Path:
    """Return the interpreter that has PyTorch. Raises missing.Missing."""
    named = os.environ.get(INTERPRETER)
    candidates = [named] if named else ["python3", "/usr/bin/python3"]
    for program in filter(None, map(shutil.which, candidates)):
        if subprocess.run([program, "-c", "import torch"], capture_output=True, check=False).returncode == 0:
            return Path(program)
    if named:
        raise missing.Missing([f"a Python with PyTorch: {named}, which {INTERPRETER} names, is not one"])
    raise missing.Missing([f"a Python with PyTorch: python3 has none, and {INTERPRETER} names no other"])


class _PythonPaths(NamedTuple):
    """Where an interpreter is installed; `prefix` is that of its virtual environment, if it has one."""

    prefix: Path
    base_prefix: Path
    base_executable: Path
    modules: Path


@functools.cache
def _paths() -> _PythonPaths:
    printed = subprocess.run([interpreter(), "-c", _PREFIXES], capture_output=True, text=True, check=True).stdout
    return _PythonPaths(*map(Path, printed.split()))


def folders() -> list[Path]:
    """Return the folders that a pod mounts from the node: the packages, the interpreter's own modules, CUDA."""
    paths = _paths()
    is_of_system = paths.base_prefix == Path("/usr")
    own = [paths.prefix, paths.modules] if is_of_system else sorted({paths.prefix, paths.base_prefix})
    return [*own, CUDA] if CUDA.exists() else own


def build(folder: Path) -> Path:
    """Write the image's archive into `folder` and return its path."""
    root = folder / "root"
    images.make_root(root)
    paths = _paths()
    for program in (interpreter().resolve(), paths.base_executable.resolve()):
        _copy(program, root, program)
    for library in _libraries(paths):
        _copy(library, root, library)
    archive = folder / "python.tar"
    images.write(root, archive, PYTHON, {"Cmd": ["/bin/bash"]})
    return archive


def _libraries(paths: _PythonPaths) -> list[Path]:
    """Return the libraries of the system that the interpreter and its packages load."""
    packages = interpreter().parent.parent.glob("lib/python*/site-packages")
    modules = [path for folder in packages for name in _PACKAGES for path in folder.glob(f"{name}/**/*.so*")]
    found = images.linked(paths.base_executable, *paths.modules.glob("lib-dynload/*.so"), *modules, check=False)
    return sorted(
        path for path in found if any(map(path.is_relative_to, _SYSTEM)) and not path.name.startswith(_DRIVER)
    )


def _copy(source: Path, root: Path, place: Path) -> None:
    target = root / str(place).lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.exists():
        shutil.copy(source, target)
