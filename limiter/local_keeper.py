"""Removes an allocation once the last of its processes has ended: `vgpu run` may end before what it has started.

The keeper is a process of its own, which waits for the lock that the processes inherit, and then for those that have
closed it. Where no keeper runs, the next `vgpu run` removes the files.
"""

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from limiter import local_processes, local_state
from limiter.host import Host
from limiter.local_arbiter import DETACHED
from limiter.local_state import LocalAllocation

_POLL_S: Final = 5.0
_KEEP: Final = """
import sys
from pathlib import Path
import limiter
from limiter import local_keeper
local_keeper.keep(Path(sys.argv[1]), limiter.this_host())
"""


def release(allocation: LocalAllocation) -> None:
    """Remove an allocation of this process: now, or when the last process that uses it has ended."""
    os.close(allocation.owner)
    if local_state.in_use(allocation.folder):
        _start(allocation.folder)
    else:
        shutil.rmtree(allocation.folder, ignore_errors=True)


def keep(folder: Path, host: Host) -> None:
    """Wait for the end of every process that uses an allocation, and remove it."""
    try:
        owner = os.open(folder / local_state.OWNER, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return
    fcntl.flock(owner, fcntl.LOCK_EX)
    while local_processes.uses(folder):
        host.sleep(_POLL_S)
    shutil.rmtree(folder, ignore_errors=True)
    os.close(owner)


def _start(folder: Path) -> None:
    if not sys.executable:
        return
    subprocess.run(
        [*DETACHED, sys.executable, "-c", _KEEP, str(folder)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
        cwd="/",
        start_new_session=True,
        check=False,
    )
