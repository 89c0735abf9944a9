"""What of the driver a container gets, and where. Pure.

NVIDIA's toolkit mounts all libraries under their full names and lets a hook write links and the loader's cache in the
container. Here each library is mounted under the name by which programs open it, in the two folders that glibc
searches without a cache: Debian's and Red Hat's. So no hook runs.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from deviceplugin.kubelet.messages import Mount

LIBRARY_FOLDERS: Final = ("/usr/lib/x86_64-linux-gnu", "/usr/lib64")
ARM_LIBRARY_FOLDERS: Final = ("/usr/lib/aarch64-linux-gnu", "/usr/lib64")
PROGRAM_FOLDER: Final = "/usr/bin"
PROGRAMS: Final = (
    "nvidia-smi",
    "nvidia-debugdump",
    "nvidia-persistenced",
    "nvidia-cuda-mps-control",
    "nvidia-cuda-mps-server",
)
SOCKETS: Final = ("/run/nvidia-persistenced/socket", "/run/nvidia-fabricmanager/socket")
MAX_LIBRARIES: Final = 200

_LIBRARIES: Final = frozenset(
    {  # compute, utility and video; what draws (EGL, GLX, Vulkan, OptiX) is left out
        "libcuda",
        "libcudadebugger",
        "libnvcuvid",
        "libnvidia-allocator",
        "libnvidia-cfg",
        "libnvidia-encode",
        "libnvidia-gpucomp",
        "libnvidia-ml",
        "libnvidia-nvvm",
        "libnvidia-nvvm70",
        "libnvidia-opencl",
        "libnvidia-opticalflow",
        "libnvidia-pkcs11",
        "libnvidia-pkcs11-openssl3",
        "libnvidia-ptxjitcompiler",
        "libnvidia-sandboxutils",
    }
)
_NAME: Final = re.compile(r"(lib[\w+-]+)\.so(?:\.[\w.]+)?")
_ALSO_WITHOUT_NUMBER: Final = ("libcuda.so",)  # programs open it by this name too


@dataclass(frozen=True, slots=True)
class DriverFiles:
    """The driver's files on a node.

    Attributes:
        version: of the driver, such as 580.95.05.
        libraries: the file of each library, by the names under which programs open it.
        programs: NVIDIA's own programs.
        firmware: folder of the GPU's firmware, if there is one.
        sockets: of the persistence daemon and the fabric manager, if they run.
    """

    version: str = ""
    libraries: Mapping[str, Path] | None = None
    programs: Sequence[Path] = ()
    firmware: Path | None = None
    sockets: Sequence[Path] = ()


def named(folder: Mapping[str, Path], version: str) -> dict[str, Path]:
    """Return the libraries of a driver's version, by the names under which programs open them.

    Args:
        folder: names of a folder's entries, and the files that they lead to.
        version: of the driver; the files of another version are not taken.

    A library is opened by the links that lead to its file: libcuda.so.1, but not libcuda.so, which only the linker
    wants; without a link, by its own name.
    """
    files = {path for path in folder.values() if path.name.endswith(f".so.{version}") and _is_wanted(path.name)}
    links = {name: path for name, path in folder.items() if path in files and name != path.name and _is_opened(name)}
    unlinked = {path.name: path for path in files if path not in links.values()}
    found = sorted((links | unlinked).items())[:MAX_LIBRARIES]
    return dict(found)


def _is_wanted(name: str) -> bool:
    parts = _NAME.fullmatch(name)
    return parts is not None and parts[1] in _LIBRARIES


def _is_opened(name: str) -> bool:
    return _is_wanted(name) and (not name.endswith(".so") or name in _ALSO_WITHOUT_NUMBER)


def mounts(files: DriverFiles, library_folders: Iterable[str] = LIBRARY_FOLDERS) -> tuple[Mount, ...]:
    """Return the driver's files in a container: all read-only."""
    libraries = sorted((files.libraries or {}).items())
    found = [Mount(f"{folder}/{name}", path) for folder in library_folders for name, path in libraries]
    found += [Mount(f"{PROGRAM_FOLDER}/{path.name}", path) for path in files.programs]
    found += [Mount(str(PurePosixPath(path)), path) for path in (files.firmware, *files.sockets) if path]
    return tuple(found)
