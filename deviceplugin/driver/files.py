"""What of the driver a container gets, and where. Pure.

NVIDIA's toolkit mounts all libraries under their full names and lets a hook write links and the loader's cache in the
container. Here each library is mounted under its SONAME in the two folders that glibc searches without a cache:
Debian's and Red Hat's. So no hook runs.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from deviceplugin.kubelet.messages import Mount

LIBRARY_FOLDERS: Final = {  # in containers, by the number of the processor's kind in ELF
    62: ("/usr/lib/x86_64-linux-gnu", "/usr/lib64"),
    183: ("/usr/lib/aarch64-linux-gnu", "/usr/lib64"),
}
PROGRAM_FOLDER: Final = "/usr/bin"
PROGRAMS: Final = (
    "nvidia-smi",
    "nvidia-debugdump",
    "nvidia-persistenced",
    "nvidia-cuda-mps-control",
    "nvidia-cuda-mps-server",
)
SOCKETS: Final = ("/run/nvidia-persistenced/socket", "/run/nvidia-fabricmanager/socket")
DRIVER: Final = "libcuda.so.1"
NVML: Final = "libnvidia-ml.so.1"
MAX_LIBRARIES: Final = 200

_NAME: Final = re.compile(r"(lib[A-Za-z0-9_+-]+)\.so(?:\.([0-9A-Za-z.]+))?")
_OTHERS: Final = frozenset({"libcuda", "libcudadebugger", "libnvcuvid"})  # the rest begins with libnvidia-
_LEFT_OUT: Final = (  # what draws or captures the screen, and NVIDIA's toolkit itself
    "api",
    "container",
    "egl",
    "fbc",
    "gl",
    "gtk",
    "ngx",
    "present",
    "rtcore",
    "tls",
    "vksc",
    "vulkan",
    "wayland",
)
_ALIASES: Final = {DRIVER: "libcuda.so"}  # programs open the driver by this name too


@dataclass(frozen=True, slots=True)
class DriverLibrary:
    """A library of a folder on the node.

    Attributes:
        path: of the file itself, without links.
        soname: the name by which programs open it.
    """

    path: Path
    soname: str


@dataclass(frozen=True, slots=True)
class DriverFiles:
    """The driver's files on a node, by their paths there.

    Attributes:
        version: of the driver, such as 580.95.05.
        machine: the number of the processor's kind, as in ELF.
        libraries: the file of each library, by its SONAME.
        programs: NVIDIA's own programs, by the names under which they are called.
        others: the folder of the GPU's firmware, and the sockets of the persistence daemon and the fabric manager, by
            their paths in containers.
    """

    version: str
    machine: int
    libraries: Mapping[str, Path]
    programs: Mapping[str, Path] = field(default_factory=dict)
    others: Mapping[str, Path] = field(default_factory=dict)


def is_wanted(name: str) -> bool:
    """Whether a file of this name may be a library for computing, monitoring or video."""
    parts = _NAME.fullmatch(name)
    if parts is None:
        return False
    stem = parts[1]
    return stem in _OTHERS or (stem.startswith("libnvidia-") and not stem[len("libnvidia-") :].startswith(_LEFT_OUT))


def chosen(found: Iterable[DriverLibrary], version: str) -> dict[str, Path]:
    """Return the libraries of a driver's version by their SONAMEs; of two with one SONAME the first found.

    NVIDIA names the files `libcuda.so.580.95.05`. Where the driver was copied without this name, a file whose name is
    its SONAME is taken; a file of another version (CUDA's compatibility packages, an earlier driver) never is.
    """
    libraries = [library for library in found if library.soname and is_wanted(library.path.name)]
    versioned = [library for library in libraries if library.path.name.endswith(f".so.{version}")]
    plain = [library for library in libraries if library.path.name == library.soname]
    by_soname = {library.soname: library.path for library in (*reversed(plain), *reversed(versioned))}
    return dict(sorted(by_soname.items())[:MAX_LIBRARIES])


def mounts(files: DriverFiles) -> tuple[Mount, ...]:
    """Return the driver's files in a container: all read-only."""
    names = dict(files.libraries)
    names |= {alias: names[soname] for soname, alias in _ALIASES.items() if soname in names}
    folders = LIBRARY_FOLDERS.get(files.machine, ("/usr/lib64",))
    found = [Mount(f"{folder}/{name}", path) for folder in folders for name, path in sorted(names.items())]
    found += [Mount(f"{PROGRAM_FOLDER}/{name}", path) for name, path in files.programs.items()]
    found += [Mount(name, path) for name, path in files.others.items()]
    return tuple(found)
