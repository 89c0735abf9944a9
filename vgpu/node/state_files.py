"""The files that a container sees: its limits, its region, the arbiter's directory, the library.

<state>/lib/<sha256-12>/libvgpushare.so, ld.so.preload    never overwritten: running processes have them mapped
<state>/allocations/<id>/limits, arbiter/, region         the region is a link into the next
<state>/regions/<id>                                      on a small tmpfs of its own where that can be mounted
<state>/watermarks                                        what the arbiter is told of each card; mounted nowhere
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
DENY: Final = Limits(cards=())  # a card without an entry may not be used at all


class StateFiles:
    """Everything below the state directory that is mounted into containers."""

    def __init__(self, state: Path) -> None:
        self.state = state
        self.allocations = state / "allocations"
        self.regions = state / "regions"
        self.libraries = state / "lib"
        self.watermarks = state / "watermarks"
        for directory in (self.allocations, self.regions, self.libraries):
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)

    def limits(self, allocation: str) -> Path:
        """The file of what is enforced."""
        return self.allocations / allocation / "limits"

    def region(self, allocation: str) -> Path:
        """The memory that the container's processes share."""
        return self.regions / allocation

    def arbiter(self, allocation: str) -> Path:
        """The directory in which the arbiter puts its socket; mounts cannot be added to a running container."""
        return self.allocations / allocation / "arbiter"

    def library(self, name: str) -> Path:
        """An installed library."""
        return self.libraries / name / LIBRARY

    def preload(self, name: str) -> Path:
        """The `/etc/ld.so.preload` that loads it."""
        return self.libraries / name / PRELOAD

    def prepare(self, allocation: str) -> None:
        """Make every file that is to be mounted: a fresh region, and limits that deny all where there are none yet."""
        self.arbiter(allocation).mkdir(parents=True, exist_ok=True, mode=0o755)
        self.arbiter(allocation).chmod(0o755)  # whatever the umask: the container may run as any user
        if not self.limits(allocation).exists():
            _create(self.limits(allocation), limits.encode(DENY), limits.SIZE, 0o644)
        self.refresh_region(allocation)
        link = self.allocations / allocation / "region"
        if not link.is_symlink():
            link.symlink_to(os.path.relpath(self.region(allocation), link.parent))

    def refresh_region(self, allocation: str) -> None:
        """Put a new region in the old one's place, whose processes keep what they have mapped.

        Raises OSError where its small file system is full.
        """
        try:
            _create(self.region(allocation), region.new(), region.SIZE, 0o666)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            raise OSError(errno.ENOSPC, "no room for one more container's region: raise --regions-mib") from None

    def write_limits(self, allocation: str, new: Limits) -> None:
        """Put limits in force, in place: a running container sees them, its mount would not follow a rename."""
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
        """Remove libraries and regions that are none of these: what a crash left, or nobody mounts any more."""
        for path in self.libraries.iterdir():
            if path.name not in libraries:
                shutil.rmtree(path, ignore_errors=True)
        for path in self.regions.iterdir():
            if path.name not in allocations and not (self.allocations / path.name).exists():
                path.unlink()

    def install_library(self, source: Path) -> str:
        """Install a library under the hash of its content; returns that name."""
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
        """Give the regions a tmpfs of their own, so that no tenant can fill the node's memory or disk by his.

        Only where a mount made here is seen by the container runtime too. Returns whether it is there.
        """
        is_there = os.path.ismount(self.regions)
        if not is_there and not is_shared_mount(self.regions, Path("/proc/self/mountinfo").read_text()):
            return False
        if not size_mib:
            return is_there
        options = f"{'remount,' * is_there}size={size_mib}m,mode=0700,nosuid,nodev,noexec"
        command = ["mount", "-t", "tmpfs", "-o", options, "vgpu-regions", str(self.regions)]
        try:
            return subprocess.run(command, check=False, capture_output=True).returncode == 0
        except OSError:  # an image without the program
            return False


def is_shared_mount(path: Path, mountinfo: str) -> bool:
    """Whether the mount that holds `path` passes new mounts on to others (proc(5), `shared:` in mountinfo)."""
    best, shared = "", False
    for line in mountinfo.splitlines():
        fields = line.split(" ")
        point = fields[4]
        if path.is_relative_to(point) and len(point) >= len(best):
            best, shared = point, any(field.startswith("shared:") for field in fields[6 : fields.index("-")])
    return shared


def _create(path: Path, beginning: bytes, size: int, mode: int) -> None:
    """Create and rename. The space is taken at once, so that nobody is killed later for want of a page."""
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
