"""Builds the simulated GPU: `python -m simgpu.build build/simgpu`, and checks and formats its C: `check`, `format`.

Makes `libcuda.so.1`, `libnvidia-ml.so.1`, gpuprobe and the two programs of MPS for x86-64 and glibc 2.17, with the
compiler and the headers that build the limiter (`limiter.build`, `limiter.build.headers`): no gcc and no CUDA toolkit
is needed.
"""

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from limiter.build import declarations, include_order, linters, macros, toolchain

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "simgpu"
OUT = ROOT / "build" / "simgpu"
OUTPUTS = (
    *("libcuda.so.1", "libnvidia-ml.so.1", "gpuprobe", "gpuprobe-linked"),
    *("nvidia-cuda-mps-control", "nvidia-cuda-mps-server"),
)

# Each folder of C, and the folders that it may include.
FOLDERS = {
    "hardware": (),
    "ledger": ("hardware",),
    "nvml": ("hardware", "ledger"),
    "probe": ("nvml",),
    "mps/pipe": (),
    "mps/control": ("hardware", "ledger", "mps/pipe"),
    "mps/server": ("hardware", "ledger"),
    "cuda/driver": ("hardware", "ledger"),
    "cuda/device": ("hardware", "ledger", "cuda/driver"),
    "cuda": ("hardware", "ledger", "mps/pipe", "cuda/driver", "cuda/device"),
    "cuda/context": ("hardware", "ledger", "cuda/driver", "cuda/device"),
    "cuda/vmm": ("hardware", "ledger", "cuda/driver", "cuda/device"),
    "cuda/allocation": ("ledger", "cuda/device", "cuda/context"),
    "cuda/queue": ("hardware", "ledger", "cuda/driver", "cuda/device", "cuda/context"),
    "cuda/module": ("hardware", "cuda/driver", "cuda/device", "cuda/context", "cuda/queue"),
    "cuda/graph": ("hardware", "cuda/driver", "cuda/device", "cuda/queue", "cuda/module"),
    "cuda/pool": (
        *("hardware", "ledger", "cuda/driver", "cuda/device", "cuda/context"),
        *("cuda/allocation", "cuda/graph"),
    ),
    "cuda/memory": (
        *("hardware", "ledger", "cuda/driver", "cuda/device", "cuda/context"),
        *("cuda/vmm", "cuda/allocation", "cuda/queue", "cuda/graph", "cuda/pool"),
    ),
    "cuda/array": (
        *("hardware", "cuda/driver", "cuda/device", "cuda/context"),
        *("cuda/vmm", "cuda/allocation", "cuda/graph", "cuda/memory"),
    ),
    "cuda/stream": (
        *("hardware", "ledger", "cuda/driver", "cuda/device", "cuda/context"),
        *("cuda/queue", "cuda/module", "cuda/graph", "cuda/pool"),
    ),
    "cuda/graph/instance": (
        *("hardware", "cuda/driver", "cuda/device", "cuda/context"),
        *("cuda/allocation", "cuda/graph", "cuda/memory", "cuda/stream"),
    ),
    "cuda/context/lifetime": (
        *("hardware", "cuda/driver", "cuda/device", "cuda/context", "cuda/queue"),
        *("cuda/module", "cuda/graph", "cuda/pool", "cuda/memory", "cuda/array", "cuda/stream"),
    ),
}
_CUDA = tuple(folder for folder in FOLDERS if folder.split("/")[0] == "cuda")
_NVML_PROTOTYPES = "nvml/functions.h"  # of the functions in all files of the folder
_BOTH_LIBRARIES = ("hardware", "ledger")
_ALL_FORMS = "-D__CUDA_API_VERSION_INTERNAL"  # cuda.h declares every form of a function under its own name
_LIBRARY = ("-shared", "-fvisibility=hidden", "-Wl,-z,defs,-z,relro,-z,now,-z,nodelete,-Bsymbolic")
_PIE = ("-fPIE", "-pie")
_PROBE = (*_PIE, "-ldl", _ALL_FORMS)
_MPS = {
    "nvidia-cuda-mps-control": ("mps/pipe", "mps/control"),
    "nvidia-cuda-mps-server": ("mps/server",),
}


def files(*folders: str, suffixes: str = "c") -> list[Path]:
    """Return the C files of these folders, or with `suffixes="ch"` their headers too."""
    return [path for folder in folders for path in sorted((SOURCES / folder).glob(f"*.[{suffixes}]"))]


def compile_command(output: Path, sources: Sequence[Path], *options: str) -> list[str]:
    """Return the compiler's command line for one output."""
    compiler = [*toolchain.compiler("x86_64"), *toolchain.flags(), "-O2", "-g0", f"-I{SOURCES}"]
    return [*compiler, *options, "-o", str(output), *map(str, sources)]


def commands(out: Path) -> dict[str, list[str]]:
    """Return the command for each output by its name. The last command needs the first output."""
    cuda, nvml = out / "libcuda.so.1", out / "libnvidia-ml.so.1"
    linked = (*_PROBE, "-DGPUPROBE_LINKED", str(cuda))
    return {
        cuda.name: compile_command(
            cuda, files(*_BOTH_LIBRARIES, "mps/pipe", *_CUDA), *_LIBRARY, _ALL_FORMS, f"-Wl,-soname,{cuda.name}"
        ),
        nvml.name: compile_command(nvml, files(*_BOTH_LIBRARIES, "nvml"), *_LIBRARY, f"-Wl,-soname,{nvml.name}"),
        "gpuprobe": compile_command(out / "gpuprobe", files("probe"), *_PROBE),
        **{
            name: compile_command(out / name, files(*_BOTH_LIBRARIES, *folders), *_PIE)
            for name, folders in _MPS.items()
        },
        "gpuprobe-linked": compile_command(out / "gpuprobe-linked", files("probe"), *linked),
    }


def static_command(output: Path) -> list[str]:
    """Return the command for a gpuprobe that contains the driver, for tests of what no loader sees; it needs gcc."""
    command = compile_command(
        output, files(*_BOTH_LIBRARIES, "mps/pipe", *_CUDA, "probe"), "-static", "-DGPUPROBE_LINKED", _ALL_FORMS
    )
    return ["gcc", *command[len(toolchain.compiler("x86_64")) :]]


def build(out: Path) -> None:
    """Build all outputs into `out`. Raises CalledProcessError; the compiler writes its messages to standard error.

    Each output replaces the file before it by a rename, because running processes may have that file mapped.
    """
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out, prefix=".building-") as fresh:
        for name, command in commands(Path(fresh)).items():
            subprocess.run(command, check=True)
            (Path(fresh) / name).chmod(0o755)
        for name in OUTPUTS:
            (Path(fresh) / name).rename(out / name)


def ensure(out: Path = OUT) -> Path:
    """Return the folder of the outputs, and build them first unless they are newer than all sources."""
    outputs = [out / name for name in OUTPUTS]
    newest = max(path.stat().st_mtime for path in files(*FOLDERS, suffixes="ch"))
    if not all(output.exists() and output.stat().st_mtime > newest for output in outputs):
        build(out)
    return out


def check() -> None:
    """Check the rules for files and folders, the format and clang-tidy's rules, and build everything once."""
    include_order.check(SOURCES, FOLDERS)
    declarations.check(SOURCES, exempt=[_NVML_PROTOTYPES])
    macros.check(SOURCES)
    linters.check_format(files(*FOLDERS, suffixes="ch"))
    linters.tidy(files(*FOLDERS), [*toolchain.flags(), f"-I{SOURCES}", _ALL_FORMS])
    with tempfile.TemporaryDirectory() as scratch:
        build(Path(scratch))


def main(argument: str) -> None:
    """Check, format, or build into the folder named."""
    if argument == "check":
        check()
    elif argument == "format":
        linters.format_in_place(files(*FOLDERS, suffixes="ch"))
    else:
        build(Path(argument).resolve())


if __name__ == "__main__":
    main(*sys.argv[1:])
