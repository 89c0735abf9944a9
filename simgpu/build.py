"""Builds the simulated NVIDIA driver and the probe: ``python -m simgpu.build build/simgpu``.

Makes ``libcuda.so.1``, ``libnvidia-ml.so.1``, ``gpuprobe`` and ``gpuprobe-linked`` for x86-64 and glibc 2.17, with the
compiler of the ``ziglang`` wheel and the headers of the ``nvidia-cuda-runtime`` wheel: no gcc, no CUDA toolkit.

The libraries stand in for a driver on a machine without a GPU. Their world is one directory, ``$SIMGPU_STATE`` or
``/run/simgpu``, which several containers may share by a bind mount:

``cards``
    One line per card, read again whenever it changes (``state_directory.write_cards`` writes it):
    ``uuid=GPU-... index=0 model="NVIDIA H100 80GB HBM3" memoryMiB=81559 reservedMiB=551 numa=0 minor=0 healthy=1``,
    and optionally ``contextMiB=0 moduleKiB=0 mig=0 recovery=0 nvlink=GPU-...,GPU-...``: what each context and each
    loaded module takes of the card. ``healthy=0``: NVML says the GPU is lost, CUDA says unknown error. No such file:
    no driver (NVML) and no device (CUDA).
``state``
    Made by the libraries: the bytes each living process holds on each card. A process that dies, kill -9 included,
    holds nothing from that moment, whatever PID namespace it was in (see ledger/state.c). Memory that several share is
    shown with the process that exported it while it holds it, else with one that imported it; what is held by open
    descriptors, arrays, multicast objects and buffers alone is on the card and shown with nobody.
``shares``
    What a file descriptor of shared memory is of (see ledger/shared_memory.c).
``visible``, else ``/run/simgpu-visible``
    UUIDs, one per line: only these cards exist here. CUDA_VISIBLE_DEVICES narrows and orders CUDA's view further.
``fail``
    Lines ``cuMemAlloc_v2 2`` or ``cuMemAlloc_v2 2 3``: that function returns 2, always or three times in all.
``events``
    Lines ``xid GPU-... 79``: delivered by nvmlEventSetWait_v2 to sets that were made before.

Memory is accounted, not there: device pointers are made-up addresses, copies check them and move nothing. What an
allocation takes of a card, and what odd calls return, is as measured on an H200 with driver 580; what arrays, graphs
and pools take is as documented. A kernel keeps the card busy for the microseconds its name ends with, after all that
its context launched before; contexts of all processes share it by time slices (hardware/timeline.h), and events and
synchronisation go by that. Not there: textures, semaphores, peers, fabric handles.
"""

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "simgpu"
OUTPUTS = ("libcuda.so.1", "libnvidia-ml.so.1", "gpuprobe", "gpuprobe-linked")
COMMON = ("hardware", "ledger")
WARNINGS = (
    "-Wall",
    "-Wextra",
    "-Werror",
    "-Wshadow",
    "-Wconversion",
    "-Wsign-conversion",
    "-Wstrict-prototypes",
    "-Wmissing-prototypes",
    "-Wvla",
)
LIBRARY = ("-shared", "-fPIC", "-fvisibility=hidden", "-Wl,-z,defs,-z,relro,-z,now,-z,nodelete,-Bsymbolic")


def cuda_include() -> Path:
    """The folder of cuda.h inside the installed nvidia-cuda-runtime wheel."""
    for file in metadata.files("nvidia-cuda-runtime") or ():
        if file.name == "cuda.h":
            return Path(str(file.locate())).parent
    raise FileNotFoundError("cuda.h: install the nvidia-cuda-runtime wheel")


def sources(*folders: str) -> list[Path]:
    """The C files of these folders of ``simgpu``."""
    return [source for folder in folders for source in sorted((SOURCES / folder).glob("*.c"))]


def compile_command(output: Path, sources: Sequence[Path], *flags: str) -> list[str]:
    """The compiler's command line for one of the outputs."""
    return [
        *(sys.executable, "-m", "ziglang", "cc", "-target", "x86_64-linux-gnu.2.17", "-std=gnu11", "-O2", "-g0"),
        "-D_GNU_SOURCE",
        *WARNINGS,
        *("-isystem", str(cuda_include()), f"-I{SOURCES}"),
        *flags,
        *("-o", str(output)),
        *map(str, sources),
    ]


def commands(out: Path) -> dict[str, list[str]]:
    """For each output the command that leaves it in ``out`` under its name; a later one may need an earlier one."""
    cuda, nvml = out / "libcuda.so.1", out / "libnvidia-ml.so.1"
    versioned = "-D__CUDA_API_VERSION_INTERNAL"  # every form of a function under its own name
    probe = ("-fPIE", "-pie", "-ldl", versioned)
    return {
        cuda.name: compile_command(cuda, sources(*COMMON, "cuda"), *LIBRARY, versioned, "-Wl,-soname,libcuda.so.1"),
        nvml.name: compile_command(nvml, sources(*COMMON, "nvml"), *LIBRARY, "-Wl,-soname,libnvidia-ml.so.1"),
        "gpuprobe": compile_command(out / "gpuprobe", sources("probe"), *probe),
        "gpuprobe-linked": compile_command(
            out / "gpuprobe-linked", sources("probe"), *probe, "-DGPUPROBE_LINKED", str(cuda)
        ),
    }


def build(out: Path) -> None:
    """Builds all four into ``out``; raises CalledProcessError with the compiler's words on standard error.

    Each appears whole, by a rename: processes may be using what is there.
    """
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out, prefix=".building-") as fresh:
        for name, command in commands(Path(fresh)).items():
            subprocess.run(command, check=True)
            (Path(fresh) / name).chmod(0o755)
        for name in OUTPUTS:
            (Path(fresh) / name).rename(out / name)


def ensure(out: Path = ROOT / "build" / "simgpu") -> Path:
    """The folder of the built files, built now unless they are newer than all sources."""
    outputs = [out / name for name in OUTPUTS]
    newest = max(source.stat().st_mtime for source in SOURCES.glob("*/*.[ch]"))
    if not all(output.exists() and output.stat().st_mtime > newest for output in outputs):
        build(out)
    return out


if __name__ == "__main__":
    build(Path(sys.argv[1]).resolve())
