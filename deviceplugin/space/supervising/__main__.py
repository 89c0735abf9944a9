"""`python -m deviceplugin.space.supervising`: run the daemons of this node's groups until SIGTERM; they go on then.

`python -m deviceplugin.space` starts this process, and again where it is killed.
"""

import fcntl
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from vgpu.adapters import extras

with extras.needed("cluster", by="deviceplugin.space"):
    from deviceplugin.space.settings import SpaceSettings
    from vgpu.adapters import process
    from vgpu.adapters import settings as settings_reader
    from vgpu.domain.errors import StateUnusable
    from vgpu.node.containers import selinux_labels
    from vgpu.node.space.directories import SpaceDirectories
    from vgpu.node.space.supervisor import Supervisor

_NO_PROGRAM: Final = (
    "no such program. It comes with the driver, and NVIDIA's container toolkit brings it into this container: a node "
    "without the toolkit serves no groups in space, so no pod of one is placed there (CardWithoutSpace). Elsewhere "
    "name it by --control"
)


def main() -> None:
    """Run; exit with status 2 on wrong settings, 1 on an error."""
    settings = settings_reader.read(SpaceSettings, os.environ)
    try:
        label = selinux_labels.labels(Path("/proc/filesystems").read_text())
        with _only_one(settings.space_dir):
            process.run("deviceplugin.space", settings.log_level, lambda: _supervise(settings, label))
    except OSError as error:
        sys.exit(f"deviceplugin.space: {error}")


async def _supervise(settings: SpaceSettings, label: Callable[[Path], None]) -> None:
    if not os.access(settings.control, os.X_OK):
        raise StateUnusable(f"{settings.control}: {_NO_PROGRAM}")
    directories = SpaceDirectories(settings.space_dir, label)
    await Supervisor(directories, settings.control, os.environ, time.monotonic).run()


@contextmanager
def _only_one(space: Path) -> Iterator[None]:
    """Wait while another supervisor serves this node: two of them would start two daemons in one directory."""
    space.mkdir(parents=True, exist_ok=True, mode=0o711)
    with (space / "lock").open("w") as lock:
        fcntl.flock(lock.fileno(), fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    main()
