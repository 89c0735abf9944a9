"""The installed limiters, `<state>/lib/<sha256-12>/`: containers get copies of them (`state_files`).

A container keeps the library that Allocate chose, and a library reads one version of the region. So the first bytes of
the region that a library reads are installed beside it.

A container whose loader cannot map the library runs without limits: the loader prints a line and goes on. So a library
is synced to the disk before it gets its name, compared with its hash before each use, and mapped as the loader does.
"""

import hashlib
import mmap
import os
import shutil
import tempfile
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Final

from vgpu.adapters import durable_files
from vgpu.domain.errors import MalformedRegion, StateUnusable
from vgpu.domain.formats import region

LIBRARY: Final = "libvgpushare.so"
PRELOAD: Final = "ld.so.preload"
REGION_HEADER: Final = "region-header"
LIBRARY_IN_CONTAINER: Final = f"/usr/local/vgpu/{LIBRARY}"

PRELOAD_CONTENT: Final = f"{LIBRARY_IN_CONTAINER}\n".encode()
_HASH_DIGITS: Final = 12


class _Damaged(Exception):
    """What is wrong with an installed library."""


class Libraries:
    """The libraries below one directory."""

    def __init__(self, root: Path, label: Callable[[Path], None] = lambda _: None) -> None:
        """`label` makes a file accessible to containers."""
        self.root = root
        self._label = label
        root.mkdir(parents=True, exist_ok=True, mode=0o700)

    def library(self, name: str) -> Path:
        """Return the path of an installed library."""
        return self.root / name / LIBRARY

    def preload(self, name: str) -> Path:
        """Return the path of the `/etc/ld.so.preload` that loads the library."""
        return self.root / name / PRELOAD

    def region_header(self, name: str) -> bytes:
        """Return the first bytes of the region that a library reads. Raises StateUnusable."""
        path = self.root / name / REGION_HEADER
        try:
            header = path.read_bytes() if path.exists() else region.FIRST_HEADER
            region.size_in(header)
        except (OSError, MalformedRegion) as error:
            raise StateUnusable(f"{path}: {error}") from error
        return header

    def install(self, content: bytes) -> str:
        """Install a library under the hash of its content, in place of a damaged one; return that name.

        Raises StateUnusable where containers could not load it.
        """
        name = _name_of(content)
        try:
            if not (self._is_intact(name) and self._has_region_header(name)):
                self._put(name, content)
        except OSError as error:
            raise StateUnusable(f"{self.root}: {error.strerror}: the limiter cannot be installed") from error
        self.check(name)
        return name

    def check(self, name: str) -> None:
        """Raise StateUnusable where a library is damaged, or may not be mapped as a program."""
        self.content(name)

    def content(self, name: str) -> bytes:
        """Return a library's bytes. Raises StateUnusable where containers could not load it."""
        path = self.library(name)
        try:
            content = self._intact(name)
            _map_program(path)
        except _Damaged as damage:
            raise StateUnusable(f"{path} {damage}: containers would run without limits") from damage
        except (OSError, ValueError) as error:
            raise StateUnusable(
                f"{path} cannot be mapped as a program ({error}), so containers would run without limits: "
                "mount the file system of the state directory without noexec, or choose another with --state-dir"
            ) from error
        return content

    def remove_others(self, names: Collection[str]) -> None:
        """Remove the libraries that are not named: no container mounts them, or a crash left them."""
        for path in self.root.iterdir():
            if path.name not in names:
                shutil.rmtree(path, ignore_errors=True)

    def _intact(self, name: str) -> bytes:
        """Return the bytes of an installed library. Raises _Damaged."""
        try:
            content, preload = self.library(name).read_bytes(), self.preload(name).read_bytes()
        except OSError as error:
            raise _Damaged(f"cannot be read ({error.strerror})") from error
        if _name_of(content) != name:
            raise _Damaged("does not have the content that its name says")
        if preload != PRELOAD_CONTENT:
            raise _Damaged(f"has a damaged {PRELOAD}")
        return content

    def _is_intact(self, name: str) -> bool:
        try:
            self._intact(name)
        except _Damaged:
            return False
        return True

    def _has_region_header(self, name: str) -> bool:
        path = self.root / name / REGION_HEADER
        return path.exists() and path.read_bytes() == region.new()

    def _put(self, name: str, content: bytes) -> None:
        """Install by a rename. A damaged library is moved away: running processes may have it mapped."""
        fresh = Path(tempfile.mkdtemp(dir=self.root, prefix=f".{name}."))
        durable_files.write(fresh / LIBRARY, content, 0o755, self._label)
        durable_files.write(fresh / PRELOAD, PRELOAD_CONTENT, 0o644, self._label)
        durable_files.write(fresh / REGION_HEADER, region.new())
        fresh.chmod(0o755)
        if (self.root / name).exists():
            (self.root / name).rename(tempfile.mkdtemp(dir=self.root, prefix=f".{name}.damaged."))
        fresh.rename(self.root / name)
        durable_files.sync_directory(self.root)


def _name_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:_HASH_DIGITS]


def _map_program(path: Path) -> None:
    """Map the file as the dynamic loader does. Raises OSError, on a file system mounted `noexec` for example."""
    handle = os.open(path, os.O_RDONLY)
    try:
        mmap.mmap(handle, 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC).close()
    finally:
        os.close(handle)
