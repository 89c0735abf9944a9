"""The files that are mounted into containers, none of them into two: `libraries` has what the library is copied from.

<state>/allocations/<id>/limits, arbiter/, region         the region is a link to shared/region
<state>/allocations/<id>/notices/idle                     what the container's pod was warned of, as long as that holds
<state>/allocations/<id>/space/                           empty, or the pipe directory of the container's group in
                                                          space is mounted here (vgpu/node/space/membership.py)
<state>/allocations/<id>/space-group                      that group's name, for `vgpu top`; not mounted
<state>/allocations/<id>/libvgpushare.so, ld.so.preload   copies: a container can lease a file (fcntl, F_SETLEASE), and
                                                          whoever opens it then waits for 45 s (docs/adr/0034)
<state>/allocations/<id>/shared/region                    on a tmpfs of its own, which holds one region and no more
<state>/watermarks                                        the arbiter's watermarks for each card; not mounted

The region is the only file that a container can write, and so enlarge. With a tmpfs for each allocation a container
that enlarges its region fills its own tmpfs only (docs/adr/0028).
"""

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Final

from vgpu.adapters import mounts
from vgpu.domain.asks import space
from vgpu.domain.errors import MalformedLimits, StateUnusable
from vgpu.domain.formats import limits, region
from vgpu.domain.formats.limits import Limits
from vgpu.node.containers.libraries import LIBRARY, PRELOAD, PRELOAD_CONTENT, Libraries

DENY: Final = Limits(cards=())  # a card without an entry may not be used

_SHARED: Final = "shared"
_IDLE: Final = "idle"
_REGION_HEADER: Final = region.new()
_REGION_INODES: Final = 8  # the root, the region, and room for a few extended attributes


class StateFiles:
    """The state directory's files."""

    def __init__(
        self, state: Path, *, region_tmpfs: bool = False, label: Callable[[Path], None] = lambda _: None
    ) -> None:
        """`region_tmpfs`: each region is on a tmpfs of its own; else a container can fill the disk by its region.

        `label` is called with each new file that containers use.
        """
        self.state = state
        self.allocations = state / "allocations"
        self.libraries = Libraries(state / "lib", label)
        self.watermarks = state / "watermarks"
        self._former_regions = state / "regions"  # of 0.1.0, whose containers mount the regions from here
        self._region_tmpfs = region_tmpfs
        self._label = label
        self.allocations.mkdir(parents=True, exist_ok=True, mode=0o700)

    def check_region_tmpfs(self, mountinfo: str) -> None:
        """Raise StateUnusable where a region's tmpfs cannot be mounted, or the container runtime would not see it.

        `mountinfo` is the content of /proc/self/mountinfo.
        """
        if not self._region_tmpfs:
            return
        if not mounts.is_shared(self.allocations, mountinfo):
            raise StateUnusable(
                f"{self.state}: mounts below it do not reach the container runtime. Mount it with propagation "
                "(mountPropagation: Bidirectional), or set --region-tmpfs=false: then a container can fill the disk"
            )
        try:
            self._mount_probe()
        except OSError as error:
            raise StateUnusable(f"no tmpfs can be mounted: {error}; the plugin must be privileged") from error

    def limits(self, allocation: str) -> Path:
        """Return the limits file of an allocation."""
        return self.allocations / allocation / "limits"

    def region(self, allocation: str) -> Path:
        """Return the region of an allocation: the memory that the container's processes share."""
        return self.allocations / allocation / _SHARED / "region"

    def library(self, allocation: str) -> Path:
        """Return the container's copy of the limiter."""
        return self.allocations / allocation / LIBRARY

    def preload(self, allocation: str) -> Path:
        """Return the `/etc/ld.so.preload` of the container."""
        return self.allocations / allocation / PRELOAD

    def arbiter(self, allocation: str) -> Path:
        """Return the directory for the arbiter's socket, mounted in advance: a running container gets no new mounts."""
        return self.allocations / allocation / "arbiter"

    def notices(self, allocation: str) -> Path:
        """Return the directory of what the container is told; containers of 0.1.0 have none."""
        return self.allocations / allocation / "notices"

    def space(self, allocation: str) -> Path:
        """Return the directory in which the container finds the MPS daemon of its group in space, if it is in one."""
        return self.allocations / allocation / "space"

    def lead_space_to(self, allocation: str, pipe: Path) -> None:
        """Let the container find this pipe directory from its next start on, until `prepare`. Raises OSError."""
        mounts.bind(pipe, self.space(allocation))

    def name_group(self, allocation: str, group: str) -> None:
        """Write which group in space the container is a member of, for people. Raises OSError."""
        content = group.encode()
        self._create(self.allocations / allocation / space.NAME_FILE, content, len(content), 0o644)

    def write_notice(self, allocation: str, text: str) -> None:
        """Write the notice that the container's pod is idle, or remove it where the text is empty. Raises OSError."""
        folder = self.notices(allocation)
        if text and folder.is_dir():
            content = text.encode()
            self._create(folder / _IDLE, content, len(content), 0o644)
        else:
            (folder / _IDLE).unlink(missing_ok=True)

    def prepare(self, allocation: str, region_header: bytes = _REGION_HEADER) -> None:
        """Create every file to mount: a fresh region, and limits that deny everything where there are none yet.

        `region_header` begins the region, in the version that the container's library reads. Raises OSError.
        """
        self._take_pipe_away(allocation)
        for folder in (self.arbiter(allocation), self.notices(allocation), self.space(allocation)):
            folder.mkdir(parents=True, exist_ok=True, mode=0o755)
            folder.chmod(0o755)  # not subject to the umask: the container may run as any user
            self._label(folder)  # a socket gets the type of its directory
        if not self.limits(allocation).exists():
            self._create(self.limits(allocation), limits.encode(DENY), limits.SIZE, 0o644)
        self._refresh_region(allocation, region_header)

    def _take_pipe_away(self, allocation: str) -> None:
        """Unmount a group's directory, also lest what removes the allocation's files remove the daemon's."""
        if mounts.is_mount(self.space(allocation)):
            mounts.unmount(self.space(allocation))

    def _refresh_region(self, allocation: str, header: bytes) -> None:
        """Replace the region by a new one; processes that have the old one mapped keep it."""
        shared = self.region(allocation).parent
        shared.mkdir(exist_ok=True, mode=0o700)
        if os.path.ismount(shared):
            mounts.unmount(shared)
        if self._region_tmpfs:
            mounts.mount_tmpfs(shared, size=region.size_in(header), inodes=_REGION_INODES)
        self._create(self.region(allocation), header, region.size_in(header), 0o666)
        _link(self.allocations / allocation / "region", self.region(allocation))
        if self._former_regions.is_dir():
            _link(self._former_regions / allocation, self.region(allocation))

    def copy_library(self, allocation: str, name: str) -> None:
        """Put fresh copies of an installed library and its preload file in place of any former ones.

        Raises OSError, and StateUnusable where the library is damaged.
        """
        content = self.libraries.content(name)
        self._create(self.library(allocation), content, len(content), 0o755)
        self._create(self.preload(allocation), PRELOAD_CONTENT, len(PRELOAD_CONTENT), 0o644)

    def write_limits(self, allocation: str, new: Limits) -> None:
        """Write the limits in place, so that a running container sees them: its mount would not follow a rename.

        Takes no lock: a container can hold a lock on its read-only mount for ever. Does not wait for a lease that a
        process of the pod holds. Raises OSError, and StateUnusable where there is such a lease.
        """
        with _opened_for_writing(self.limits(allocation)) as file:
            try:
                plan = limits.rewrite(file.read(), new)
            except MalformedLimits:
                plan = [(0, limits.encode(new))]
            for offset, data in plan:
                os.pwrite(file.fileno(), data, offset)

    def remove(self, allocation: str) -> None:
        """Remove an allocation's files."""
        self._take_pipe_away(allocation)
        shared = self.region(allocation).parent
        if os.path.ismount(shared):
            mounts.unmount(shared)
        shutil.rmtree(self.allocations / allocation, ignore_errors=True)
        (self._former_regions / allocation).unlink(missing_ok=True)

    def _create(self, path: Path, beginning: bytes, size: int, mode: int) -> None:
        """Create and rename. The space is allocated at once, so that no process is killed later for want of it."""
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                os.posix_fallocate(handle, 0, size)
                os.fchmod(handle, mode)
                file.write(beginning)
            self._label(Path(name))
            Path(name).replace(path)
        except OSError:
            Path(name).unlink(missing_ok=True)
            raise

    def _mount_probe(self) -> None:
        probe = Path(tempfile.mkdtemp(dir=self.state, prefix=".probe."))
        try:
            mounts.mount_tmpfs(probe, size=region.SIZE, inodes=_REGION_INODES)
            mounts.unmount(probe)
        finally:
            probe.rmdir()


def _opened_for_writing(path: Path) -> BinaryIO:
    try:
        return os.fdopen(os.open(path, os.O_RDWR | os.O_NONBLOCK), "r+b")
    except BlockingIOError as error:
        raise StateUnusable(f"{path}: a process of the pod holds a lease on its limits (F_SETLEASE)") from error


def _link(link: Path, target: Path) -> None:
    """Make a symbolic link, in place of any file."""
    wanted = os.path.relpath(target, link.parent)
    if link.is_symlink() and str(link.readlink()) == wanted:
        return
    fresh = link.with_name(f".{link.name}.new")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(wanted)
    fresh.replace(link)
