"""Builds the C programs of the benchmarks into `build/bench`: `python -m benchmarks.programs.build`.

They are built for x86-64 and glibc 2.17 by the compiler that builds the limiter, and carried to the machine with the
GPU, which may have no compiler. Programs in CUDA C++ need nvcc and are built where they run.
"""

import os
import shutil
import subprocess
import tempfile
from importlib import util
from pathlib import Path

from limiter import build as limiter_build
from limiter.build import toolchain

HERE = Path(__file__).parent
OUT = HERE.parents[1] / "build" / "bench"
SHARED = ("calls.c", "processes.c")
KERNELS = ("calls.c", "kernels/kernels.c")
ARBITER_CLIENT = ("turn_client.c",)
CLASSES = (*SHARED, "device_code.c", *sorted(f"classes/{path.name}" for path in (HERE / "classes").glob("*.c")))
PROGRAMS = {
    "worker": (*CLASSES, "worker.c"),
    "race": (*CLASSES, "race.c"),
    "kills": (*CLASSES, "kills_worker.c", "kills.c"),
    "lock_holder": (*CLASSES, "lock_holder.c"),
    "cost": (*SHARED, "cost.c"),
    "feed": (*KERNELS, "kernels/feed.c"),
    "ctx_limits": (*SHARED, "card_usage.c", "device_code.c", "ctx_limits.c"),
    "checkpoint": (*SHARED, "card_usage.c", "checkpoint.c"),
    "timed": (*KERNELS, "kernels/timed.c"),
    "delayed": (*KERNELS, "kernels/delayed.c"),
    "parallel": (*KERNELS, "kernels/parallel.c"),
    "handover": (*KERNELS, "kernels/handover.c"),
    "requests": (*KERNELS, "kernels/requests.c"),
    "arbiter_clients": (*ARBITER_CLIENT, "arbiter_clients.c"),
    "turn_waits": (*ARBITER_CLIENT, "turn_waits.c"),
}

SUFFIXES = {".c", ".h", ".cu"}
LIMITER = HERE.parents[1] / "limiter" / "src"
LIBRARY = "libdriver-time.so"
REAL_DRIVER = "libcuda-below.so"  # the name by which LIBRARY finds the real driver


def program(name: str) -> Path:
    """Return the path of a program; builds it first when its sources are newer and a compiler is installed."""
    path = OUT / name
    if util.find_spec("ziglang") and _is_stale(path, HERE):
        build(name)
    return path


def cuda_program(name: str) -> Path | None:
    """Return the path of a program in CUDA C++, built for the card of this machine; None where nvcc is not on PATH."""
    path, nvcc = OUT / name, shutil.which("nvcc")
    if nvcc and _is_stale(path, HERE):
        build_cuda(nvcc, name)
    return path if nvcc else None


def library() -> Path:
    """Return the path of the library that measures the time in the driver; builds it first as `program` does."""
    path = OUT / LIBRARY
    if util.find_spec("ziglang") and _is_stale(path, HERE, LIMITER):
        build_library()
    return path


def build(name: str) -> None:
    """Compile one program. Raises CalledProcessError; the compiler writes its messages to standard error."""
    OUT.mkdir(parents=True, exist_ok=True)
    sources = [str(HERE / source) for source in PROGRAMS[name]]
    fresh = OUT / f"{name}.{os.getpid()}"  # another process may build or run the program at the same time
    _compile("-fPIE", "-pie", "-o", str(fresh), *sources, "-ldl", "-lpthread")
    fresh.rename(OUT / name)


def build_cuda(nvcc: str, name: str) -> None:
    """Compile a program with the part of CUDA's runtime that runs on the card. Raises CalledProcessError."""
    OUT.mkdir(parents=True, exist_ok=True)
    fresh = OUT / f"{name}.{os.getpid()}"
    options = ("-O2", "-rdc=true", "-arch=native", "-o", str(fresh))
    subprocess.run([nvcc, *options, str(HERE / f"{name}.cu"), "-lcudadevrt"], check=True)
    fresh.rename(OUT / name)


def build_library() -> None:
    """Compile the library. It is linked with an empty stand-in for the real driver, which is found at run time."""
    OUT.mkdir(parents=True, exist_ok=True)
    named = ("-fPIC", "-shared", "-fvisibility=hidden")
    with tempfile.TemporaryDirectory() as folder:
        stand_in = f"{folder}/{REAL_DRIVER}"
        empty = Path(folder) / "empty.c"
        empty.write_text("")
        _compile(*named, f"-Wl,-soname,{REAL_DRIVER}", "-o", stand_in, str(empty))
        sources = str(HERE / "driver_time.c"), str(LIMITER / "loader" / "elf.c")
        options = (f'-DREAL_DRIVER="{REAL_DRIVER}"', "-Wl,-soname,libcuda.so.1", "-Wl,--no-as-needed", "-Wl,-z,defs")
        fresh = OUT / f"{LIBRARY}.{os.getpid()}"
        _compile(*named, *options, "-o", str(fresh), *sources, stand_in, "-ldl")
        fresh.rename(OUT / LIBRARY)


def _is_stale(path: Path, *folders: Path) -> bool:
    newest = max(file.stat().st_mtime for folder in folders for file in folder.rglob("*") if file.suffix in SUFFIXES)
    return not (path.is_file() and path.stat().st_mtime > newest)


def _compile(*arguments: str) -> None:
    command = [*toolchain.compiler("x86_64"), *limiter_build.flags(), "-O2", "-g0", f"-I{HERE}"]
    subprocess.run([*command, *arguments], check=True)


if __name__ == "__main__":
    for name in PROGRAMS:
        build(name)
    build_library()
