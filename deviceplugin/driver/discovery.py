"""Finds the driver's files on a node."""

import logging
import os
import platform
import re
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from deviceplugin.driver import files
from deviceplugin.driver.files import DriverFiles
from vgpu.domain.errors import StateUnusable

_DRIVER: Final = "libcuda.so.1"
_LDCONFIG_S: Final = 10
_MAX_ENTRIES: Final = 20_000  # of one folder
_WELL_KNOWN: Final = (
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/nvidia/lib64",
    "/usr/local/nvidia/lib",
    "/home/kubernetes/bin/nvidia/lib64",
)
_PROGRAM_FOLDERS: Final = ("/usr/bin", "/usr/local/bin", "/usr/local/nvidia/bin", "/home/kubernetes/bin/nvidia/bin")

log = logging.getLogger(__name__)


class DriverRoot:
    """The files of a node, seen below `root`: `/` for a process of the node, the mount of its root in a pod."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def find(self, version: str) -> DriverFiles:
        """Return the files of the driver of this version, by their paths on the node. Raises StateUnusable."""
        libraries = self._libraries(version)
        if _DRIVER not in libraries:
            raise StateUnusable(f"no {_DRIVER} of driver {version} in {self._root}: is --driver-root right?")
        programs = (self._program(name, libraries[_DRIVER].parent) for name in files.PROGRAMS)
        firmware = Path(f"/lib/firmware/nvidia/{version}")
        return DriverFiles(
            version,
            libraries,
            tuple(program for program in programs if program),
            firmware if self._seen(firmware).is_dir() else None,
            tuple(Path(socket) for socket in files.SOCKETS if self._seen(Path(socket)).is_socket()),
        )

    def _libraries(self, version: str) -> dict[str, Path]:
        """Return the libraries of the first folder that has the driver."""
        for folder in dict.fromkeys((*self._cached(), *map(Path, _WELL_KNOWN))):
            found = files.named(dict(self._entries(folder)), version)
            if _DRIVER in found:
                return found
        return {}

    def _cached(self) -> Iterator[Path]:
        """Yield the folders of libcuda.so.1 that the node's loader knows."""
        for line in self._cache().splitlines():
            name, _, path = line.strip().partition(" => ")
            if name.split(" ")[0] == _DRIVER and _is_of_this_machine(name) and path.startswith("/"):
                yield Path(path).parent

    def _cache(self) -> str:
        """Return what ldconfig prints of the node's cache; empty where it fails."""
        candidates = (self._root / "sbin/ldconfig", Path("/sbin/ldconfig"))
        program = next((candidate for candidate in candidates if candidate.exists()), Path("ldconfig"))
        command: list[str | Path] = [program, "-p", "-C", self._root / "etc/ld.so.cache"]
        try:
            done = subprocess.run(command, capture_output=True, timeout=_LDCONFIG_S, check=True)
        except (OSError, subprocess.SubprocessError) as error:
            log.warning("ldconfig of the node: %s", error)
            return ""
        return done.stdout.decode(errors="replace")

    def _entries(self, folder: Path) -> Iterator[tuple[str, Path]]:
        """Yield the names of a folder, and the files to which they lead, by their paths on the node."""
        try:
            with os.scandir(self._seen(folder)) as entries:
                names = [entry.name for entry, _ in zip(entries, range(_MAX_ENTRIES), strict=False)]
        except OSError:
            return
        for name in names:
            if re.fullmatch(r"lib[\w.+-]+", name) and (led := self._target(folder / name)):
                yield name, led

    def _target(self, path: Path) -> Path | None:
        """Return the regular file to which links of the node lead."""
        for _ in range(8):
            seen = self._seen(path)
            if not seen.is_symlink():
                return path if seen.is_file() else None
            path = Path(os.path.normpath(path.parent / seen.readlink()))
        return None

    def _program(self, name: str, libraries: Path) -> Path | None:
        """Return a program of the driver: beside its libraries first, since a script of its name may lead there."""
        beside = libraries.parent / "bin"
        for folder in (beside, *map(Path, _PROGRAM_FOLDERS)):
            if (found := self._target(folder / name)) and self._is_program(found):
                return found
        return None

    def _is_program(self, path: Path) -> bool:
        seen = self._seen(path)
        with seen.open("rb") as file:
            return file.read(4) == b"\x7fELF" and os.access(seen, os.X_OK)

    def _seen(self, path: Path) -> Path:
        return self._root / str(path).lstrip("/")


def library_folders() -> Iterable[str]:
    """Return the folders in containers for libraries of this machine's processor."""
    return files.ARM_LIBRARY_FOLDERS if platform.machine() == "aarch64" else files.LIBRARY_FOLDERS


def _is_of_this_machine(name: str) -> bool:
    """Whether ldconfig's words after a library's name, such as `(libc6,x86-64)`, mean 64 bits."""
    return "x86-64" in name or "AArch64" in name
