"""NVIDIA's headers, from wheels of this environment: where they are, and which functions they declare."""

import re
import subprocess
import tempfile
from collections.abc import Sequence
from importlib import util
from pathlib import Path

# The folders of the wheels below `nvidia`: nvidia-cuda-runtime and nvidia-nvml-dev, and both as they were for CUDA 12.
NEWEST = "cu13/include"
FOLDERS = (NEWEST, "cuda_runtime/include", "nvml_dev/include")

_HEADERS = ("cuda.h", "cudaGL.h", "cudaEGL.h", "cudaVDPAU.h", "nvml.h")
_TYPEDEFS = tuple(f"cuda{part}Typedefs.h" for part in ("", "GL", "EGL", "VDPAU", "Profiler"))
_FOREIGN = ("GL/gl.h", "EGL/egl.h", "EGL/eglext.h", "vdpau/vdpau.h", "cudaProfiler.h")  # in no wheel, and not needed

# Every version and stream form of a function under its exported name; then the stream forms of what has only macros.
_FORMS = (
    ("-D__CUDA_API_VERSION_INTERNAL", "-DNVML_NO_UNVERSIONED_FUNC_DEFS"),
    ("-DCUDA_API_PER_THREAD_DEFAULT_STREAM",),
)

_DECLARED = re.compile(r"(?<!inline CUresult )\b((?:cu|nvml)[A-Z]\w*)\s*\(")
_TYPEDEF = re.compile(r"\bPFN_(cu\w+?)_v\d+(?:_ptds|_ptsz)?\b")


def folder(name: str = NEWEST) -> Path:
    """Return the folder of a wheel's headers. Exits where the wheel is not installed."""
    spec = util.find_spec("nvidia")
    for root in spec.submodule_search_locations or () if spec else ():
        if (Path(root) / name).is_dir():
            return Path(root) / name
    raise SystemExit(f"nvidia/{name} is missing: install the wheels nvidia-cuda-runtime and nvidia-nvml-dev")


def declared(name: str, compiler: Sequence[str]) -> set[str]:
    """Return the names of all functions that a folder's headers declare; base names for those with a typedef only."""
    there = [header for header in (*_HEADERS, *_TYPEDEFS) if (folder(name) / header).is_file()]
    found: set[str] = set()
    with tempfile.TemporaryDirectory() as foreign:
        _make_empty(Path(foreign))
        for form in _FORMS:
            text = _preprocess([*compiler, *form, "-isystem", str(folder(name)), "-isystem", foreign], there)
            found |= {*_DECLARED.findall(text), *_TYPEDEF.findall(text)}
    return found


def _make_empty(foreign: Path) -> None:
    for header in _FOREIGN:
        (foreign / header).parent.mkdir(exist_ok=True)
        (foreign / header).touch()


def _preprocess(command: Sequence[str], headers: Sequence[str]) -> str:
    source = "".join(f"#include <{header}>\n" for header in headers)
    command = [*command, "-E", "-P", "-x", "c", "-"]
    done = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{headers}: {done.stderr}")
    return done.stdout
