"""SELinux labels of the files that containers use: without one, a container on such a node can read none of them.

The kubelet labels the volumes of pods, but not the mounts that a device plugin asks for.
"""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

# The type that container_t may read, write, map and execute. Without categories, all containers have access; each sees
# only the files that are mounted into it.
CONTAINER_FILE: Final = b"system_u:object_r:container_file_t:s0\0"
_XATTR: Final = "security.selinux"


def is_selinux(filesystems: str) -> bool:
    """Whether SELinux is enabled, by the content of /proc/filesystems: the kernel registers selinuxfs only then."""
    return any(line.split()[-1:] == ["selinuxfs"] for line in filesystems.splitlines())


def labels(filesystems: str) -> Callable[[Path], None]:
    """Return what lets containers use a file of this node; it does nothing where SELinux is not enabled.

    `filesystems` is the content of /proc/filesystems.
    """
    return label if is_selinux(filesystems) else lambda _: None


def label(path: Path) -> None:
    """Let containers use a file, or the files that are made in a directory from now on.

    Does nothing on a file system with one label for all files. Raises OSError.
    """
    try:
        os.setxattr(path, _XATTR, CONTAINER_FILE, follow_symlinks=False)
    except OSError as error:
        if error.errno != errno.ENOTSUP:
            raise
