"""Finds the driver's files on a node."""

import itertools
import logging
import os
import platform
import re
import signal
import stat
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from deviceplugin.driver import elf_names, files
from deviceplugin.driver.files import DriverFiles, DriverLibrary
from vgpu.domain.errors import StateUnusable

_LDCONFIG_S: Final = 10.0
_MAX_CACHE: Final = 16 * 1024 * 1024  # bytes of ldconfig's output that are read
_MAX_ENTRIES: Final = 20_000  # of one folder
_MAX_FOLDERS: Final = 64
_MAX_LINKS: Final = 40  # as many as the kernel follows
_LDCONFIGS: Final = ("/sbin/ldconfig.real", "/sbin/ldconfig")  # Ubuntu's is a script around the first
_OWN_LDCONFIGS: Final = ("/sbin/ldconfig", "ldconfig")
_VERSION: Final = re.compile(r"[0-9A-Za-z]+(\.[0-9A-Za-z]+)*")
_MACHINES: Final = {"x86_64": 62, "aarch64": 183}
_LIBRARY_FOLDERS: Final = (
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
    """The files of a node, seen below `root`: `/` for a process of the node, the mount of its root in a pod.

    Links are followed as the node follows them: an absolute link leads below `root`.
    """

    def __init__(
        self, root: Path, environment: Mapping[str, str] | None = None, ldconfig_s: float = _LDCONFIG_S
    ) -> None:
        """Search `environment`'s PATH and LD_LIBRARY_PATH too, where this process is one of the node."""
        self.root = root.resolve()
        self._environment = (environment or {}) if root == Path("/") else {}
        self._ldconfig_s = ldconfig_s
        self._complaints: set[str] = set()
        self._machine = _MACHINES.get(platform.machine(), 0)

    def find(self, version: str) -> DriverFiles:
        """Return the files of the driver of this version, by their paths on the node. Raises StateUnusable."""
        if not _VERSION.fullmatch(version):
            raise StateUnusable(f"the driver's version is {version!r}")
        folders = self._library_folders()
        found = itertools.chain.from_iterable(self._libraries(folder) for folder in folders)
        libraries = files.chosen(found, version)
        if files.DRIVER not in libraries:
            raise StateUnusable(
                f"no {files.DRIVER} of driver {version} below {self.root}: is --driver-root the node's root?"
            )
        return DriverFiles(
            version,
            self._machine,
            libraries,
            self._programs((libraries[files.DRIVER].parent, *folders)),
            self._others(version),
        )

    def nvml(self) -> Path | None:
        """Return where this process finds the node's NVML; None where there is none."""
        folders = self._library_folders()
        linked = (self._file(folder / files.NVML) for folder in folders)
        for path in linked:
            if path and self._names(path).machine == self._machine:
                return self.seen(path)
        found = itertools.chain.from_iterable(self._libraries(folder) for folder in folders)
        return next((self.seen(library.path) for library in found if library.soname == files.NVML), None)

    def seen(self, path: Path) -> Path:
        """Return where this process sees a path of the node."""
        return self.root / str(path).lstrip("/")

    def _library_folders(self) -> tuple[Path, ...]:
        listed = (*self._cached(), *self._listed("LD_LIBRARY_PATH"), *map(Path, _LIBRARY_FOLDERS))
        return tuple(dict.fromkeys(self._real(folder) or folder for folder in listed))[:_MAX_FOLDERS]

    def _listed(self, variable: str) -> list[Path]:
        return [Path(entry) for entry in self._environment.get(variable, "").split(":") if entry.startswith("/")]

    def _cached(self) -> Iterator[Path]:
        """Yield the folders that the node's loader knows for the driver and for NVML."""
        for line in self._cache().splitlines():
            name, _, path = line.strip().partition(" => ")
            if name.split(" ")[0] in (files.DRIVER, files.NVML) and path.startswith("/") and path.isprintable():
                yield Path(path).parent

    def _cache(self) -> str:
        """Return what ldconfig prints of the node's cache; empty where it fails."""
        of_node = (self._file(Path(name)) for name in _LDCONFIGS)
        for program in dict.fromkeys((*(str(self.seen(path)) for path in of_node if path), *_OWN_LDCONFIGS)):
            try:
                return self._printed([program, "-p", "-C", str(self.seen(Path("/etc/ld.so.cache")))])
            except OSError as error:
                self._complain(f"libraries of the node by {program}: {error}")
        return ""

    def _complain(self, complaint: str) -> None:
        """Log a complaint once: the node is searched again and again."""
        if complaint not in self._complaints:
            self._complaints.add(complaint)
            log.warning("%s; its usual folders are searched", complaint)

    def _printed(self, command: list[str]) -> str:
        """Return what a command prints, in bounded time and memory. Raises OSError where it fails."""
        with subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as process:
            timer = threading.Timer(self._ldconfig_s, _kill_group, [process])
            timer.start()
            try:
                printed = process.stdout.read(_MAX_CACHE) if process.stdout else b""
            finally:
                if len(printed) == _MAX_CACHE:
                    _kill_group(process)
                status = process.wait()
                timer.cancel()
        if status != 0:
            raise OSError(f"exit status {status}")
        return printed.decode(errors="replace")

    def _libraries(self, folder: Path) -> Iterator[DriverLibrary]:
        """Yield the folder's libraries that containers may need."""
        try:
            with os.scandir(self.seen(folder)) as entries:
                names = sorted(entry.name for entry in itertools.islice(entries, _MAX_ENTRIES))
        except OSError:
            return
        for name in filter(files.is_wanted, names):
            if (path := self._file(folder / name)) and (found := self._names(path)).machine == self._machine:
                yield DriverLibrary(path, found.soname)

    def _names(self, path: Path) -> elf_names.ElfNames:
        """Return what a library says of itself; machine 0 where it is none."""
        nothing = elf_names.ElfNames(-1, "")
        try:
            file = os.open(self.seen(path), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return nothing
        try:
            return elf_names.read(lambda size, offset: os.pread(file, size, offset)) or nothing
        finally:
            os.close(file)

    def _programs(self, libraries: tuple[Path, ...]) -> dict[str, Path]:
        """Return the driver's programs: those beside its libraries first, since scripts have their names."""
        beside = (folder.parent / "bin" for folder in libraries)
        folders = (*beside, *self._listed("PATH"), *map(Path, _PROGRAM_FOLDERS))
        candidates = ((name, self._file(folder / name)) for name in files.PROGRAMS for folder in folders)
        found = ((name, path) for name, path in candidates if path and self._is_program(path))
        return dict(reversed(list(found)))  # the first of a name

    def _is_program(self, path: Path) -> bool:
        return self._names(path).machine == self._machine and os.access(self.seen(path), os.X_OK)

    def _others(self, version: str) -> dict[str, Path]:
        firmware = Path(f"/lib/firmware/nvidia/{version}")
        found = {name: self._real(Path(name)) for name in files.SOCKETS}
        sockets = {name: path for name, path in found.items() if path and stat.S_ISSOCK(self._mode(path))}
        folder = self._real(firmware)
        return ({str(firmware): folder} if folder and stat.S_ISDIR(self._mode(folder)) else {}) | sockets

    def _mode(self, path: Path) -> int:
        """Return the kind of a path without links; 0 where there is nothing."""
        try:
            return self.seen(path).lstat().st_mode
        except OSError:
            return 0

    def _file(self, path: Path) -> Path | None:
        """Return the regular file to which a path leads on the node."""
        led = self._real(path)
        return led if led and stat.S_ISREG(self._mode(led)) else None

    def _real(self, path: Path) -> Path | None:
        """Return a path of the node without links; None where links go round, or it cannot be written in UTF-8."""
        pending, reached, links = list(reversed(path.parts)), Path("/"), 0
        while pending:
            part = pending.pop()
            reached = reached.parent if part == ".." else reached / part
            try:
                target = self.seen(reached).readlink()
            except OSError:  # no link, or nothing
                continue
            links += 1
            if links > _MAX_LINKS:
                return None
            pending += reversed(target.parts)
            reached = Path("/") if target.is_absolute() else reached.parent
        return reached if str(reached).isprintable() else None


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a command and the processes that it started, which may hold its output open."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
