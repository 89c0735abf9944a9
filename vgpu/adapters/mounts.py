"""Small file systems in memory, and directories in other places, mounted by mount(2). Only root can mount."""

import ctypes
import errno
import os
from pathlib import Path
from typing import Final

_NOSUID_NODEV_NOEXEC: Final = 2 | 4 | 8  # MS_NOSUID, MS_NODEV, MS_NOEXEC
_BIND: Final = 4096  # MS_BIND
_DETACH_NOFOLLOW: Final = 2 | 8  # MNT_DETACH, UMOUNT_NOFOLLOW
_NOT_MOUNTED: Final = frozenset({errno.EINVAL, errno.ENOENT})

_libc = ctypes.CDLL(None, use_errno=True)


def mount_tmpfs(path: Path, *, size: int, inodes: int) -> None:
    """Mount an empty tmpfs of at most `size` bytes and `inodes` files (its root counts). Raises OSError."""
    options = f"size={size},nr_inodes={inodes},mode=0700"
    if _libc.mount(b"vgpu", bytes(path), b"tmpfs", _NOSUID_NODEV_NOEXEC, options.encode()):
        raise _error(path)


def bind(directory: Path, at: Path) -> None:
    """Show a directory at another path, in place of what was mounted there. Raises OSError."""
    if is_mount(at):
        unmount(at)
    if _libc.mount(bytes(directory), bytes(at), None, _BIND, None):
        raise _error(at)


def is_mount(path: Path) -> bool:
    """Whether anything is mounted at a path, directories of the same file system too. Raises OSError."""
    return path.exists() and _mount_id(path) != _mount_id(path.parent)


def unmount(path: Path) -> None:
    """Detach every file system mounted at a path; does nothing where none is. Raises OSError.

    Processes and containers that use a detached file system keep it until they end.
    """
    while _libc.umount2(bytes(path), _DETACH_NOFOLLOW) == 0:
        pass
    if ctypes.get_errno() not in _NOT_MOUNTED:
        raise _error(path)


def is_shared(path: Path, mountinfo: str) -> bool:
    """Whether new mounts below `path` propagate to other mount namespaces (proc(5), `shared:` in mountinfo)."""
    best, shared = "", False
    for line in mountinfo.splitlines():
        fields = line.split(" ")
        point = fields[4]
        if path.is_relative_to(point) and len(point) >= len(best):
            best, shared = point, any(field.startswith("shared:") for field in fields[6 : fields.index("-")])
    return shared


def _mount_id(path: Path) -> str:
    handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        fields = Path(f"/proc/self/fdinfo/{handle}").read_text().split()
    finally:
        os.close(handle)
    return fields[fields.index("mnt_id:") + 1]


def _error(path: Path) -> OSError:
    code = ctypes.get_errno()
    return OSError(code, os.strerror(code), str(path))
