"""The files that are mounted into containers: limits, region, the arbiter's directory, the library.

<state>/lib/<sha256-12>/libvgpushare.so, ld.so.preload    never overwritten: running processes have them mapped
<state>/allocations/<id>/limits, arbiter/, region         the region is a link into regions/
<state>/regions/<id>                                      on a small tmpfs of its own where that can be mounted
<state>/watermarks                                        the arbiter's watermarks for each card; not mounted
"""

import errno
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import Final

from vgpu import limits, region
from vgpu.errors import MalformedLimits
from vgpu.limits import Limits

LIBRARY: Final = "libvgpushare.so"
PRELOAD: Final = "ld.so.preload"
LIBRARY_IN_CONTAINER: Final = f"/usr/local/vgpu/{LIBRARY}"
DENY: Final = Limits(cards=())  # a card without an entry may not be used


class StateFiles:
    """The state directory's files."""

    def __init__(self, state: Path) -> None:
        self.state = state
        self.allocations = state / "allocations"
        self.regions = state / "regions"
        self.libraries = state / "lib"
        self.watermarks = state / "watermarks"
        for directory in (self.allocations, self.regions, self.libraries):
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)

    def limits(self, allocation: str) -> Path:
        """Return the limits file of an allocation."""
        return self.allocations / allocation / "limits"

    def region(self, allocation: str) -> Path:
        """Return the region of an allocation: the memory that the container's processes share."""
        return self.regions / allocation

    def arbiter(self, allocation: str) -> Path:
        """Return the directory for the arbiter's socket, mounted in advance: a running container gets no new mounts."""
        return self.allocations / allocation / "arbiter"

    def library(self, name: str) -> Path:
        """Return the path of an installed library."""
        return self.libraries / name / LIBRARY

    def preload(self, name: str) -> Path:
        """Return the path of the `/etc/ld.so.preload` that loads the library."""
        return self.libraries / name / PRELOAD

    def prepare(self, allocation: str) -> None:
        """Create every file to mount: a fresh region, and limits that deny everything where there are none yet."""
        self.arbiter(allocation).mkdir(parents=True, exist_ok=True, mode=0o755)
        self.arbiter(allocation).chmod(0o755)  # not subject to the umask: the container may run as any user
        if not self.limits(allocation).exists():
            _create(self.limits(allocation), limits.encode(DENY), limits.SIZE, 0o644)
        self.refresh_region(allocation)
        link = self.allocations / allocation / "region"
        if not link.is_symlink():
            link.symlink_to(os.path.relpath(self.region(allocation), link.parent))

    def refresh_region(self, allocation: str) -> None:
        """Replace the region by a new one; processes that have the old one mapped keep it.

        Raises OSError where the regions' file system is full.
        """
        try:
            _create(self.region(allocation), region.new(), region.SIZE, 0o666)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            raise OSError(errno.ENOSPC, "no room for one more container's region: raise --regions-mib") from None

    def write_limits(self, allocation: str, new: Limits) -> None:
        """Write the limits in place, so that a running container sees them: its mount would not follow a rename.

        Takes no lock: a container can hold a lock on its read-only mount for ever.
        """
        path = self.limits(allocation)
        with path.open("r+b") as file:
            try:
                plan = limits.rewrite(file.read(), new)
            except MalformedLimits:
                plan = [(0, limits.encode(new))]
            for offset, data in plan:
                os.pwrite(file.fileno(), data, offset)

    def remove(self, allocation: str) -> None:
        """Remove an allocation's files."""
        shutil.rmtree(self.allocations / allocation, ignore_errors=True)
        self.region(allocation).unlink(missing_ok=True)

    def remove_others(self, libraries: Collection[str], allocations: Collection[str]) -> None:
        """Remove the libraries and regions that are not listed: nothing mounts them, or a crash left them."""
        for path in self.libraries.iterdir():
            if path.name not in libraries:
                shutil.rmtree(path, ignore_errors=True)
        for path in self.regions.iterdir():
            if path.name not in allocations and not (self.allocations / path.name).exists():
                path.unlink()

    def install_library(self, source: Path) -> str:
        """Install a library under the hash of its content; return that name."""
        content = source.read_bytes()
        name = hashlib.sha256(content).hexdigest()[:12]
        if not self.library(name).exists():
            fresh = Path(tempfile.mkdtemp(dir=self.libraries))
            fresh.joinpath(LIBRARY).write_bytes(content)
            fresh.joinpath(PRELOAD).write_text(f"{LIBRARY_IN_CONTAINER}\n")
            for path, mode in ((fresh / LIBRARY, 0o755), (fresh / PRELOAD, 0o644), (fresh, 0o755)):
                path.chmod(mode)
            fresh.rename(self.libraries / name)
        return name

    def mount_regions(self, size_mib: int) -> bool:
        """Mount a tmpfs for the regions, so that no container can fill the node's memory or disk through its region.

        Mounts only where the container runtime sees the mount too. Returns whether the tmpfs is mounted.
        """
        is_mounted = os.path.ismount(self.regions)
        if not is_mounted and not is_shared_mount(self.regions, Path("/proc/self/mountinfo").read_text()):
            return False
        if not size_mib:
            return is_mounted
        options = f"size={size_mib}m,mode=0700,nosuid,nodev,noexec"
        if is_mounted:
            options = f"remount,{options}"
        command = ["mount", "-t", "tmpfs", "-o", options, "vgpu-regions", str(self.regions)]
        try:
            return subprocess.run(command, check=False, capture_output=True).returncode == 0
        except OSError:  # an image without the program
            return False


def is_shared_mount(path: Path, mountinfo: str) -> bool:
    """Whether new mounts below `path` propagate to other mount namespaces (proc(5), `shared:` in mountinfo)."""
    best, shared = "", False
    for line in mountinfo.splitlines():
        fields = line.split(" ")
        point = fields[4]
        if path.is_relative_to(point) and len(point) >= len(best):
            best, shared = point, any(field.startswith("shared:") for field in fields[6 : fields.index("-")])
    return shared


def _create(path: Path, beginning: bytes, size: int, mode: int) -> None:
    """Create and rename. The space is allocated at once, so that no process is killed later because tmpfs is full."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            os.posix_fallocate(handle, 0, size)
            os.fchmod(handle, mode)
            file.write(beginning)
        Path(name).replace(path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
