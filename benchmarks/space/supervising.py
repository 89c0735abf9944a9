"""The supervisor of `vgpu-space` as its container runs it, without Kubernetes and its packages.

    python -m benchmarks.space.supervising SPACE PROGRAM

A first process, which keeps the supervisor running. SPACE has the files by which members are named, PROGRAM is the
daemon's.
"""

import asyncio
import logging
import os
import sys
import time
from pathlib import Path
from typing import Final

from vgpu.adapters import first_process
from vgpu.adapters.child_process import Restarts
from vgpu.node.space.directories import SpaceDirectories
from vgpu.node.space.supervisor import Supervisor
from vgpu.pacing.back_off import BackOff

RESTARTS: Final = Restarts(BackOff(first_s=0.2, longest_s=10.0), steady_s=60.0)  # as deviceplugin.space has them
SUPERVISOR: Final = "--supervisor"


def main(arguments: list[str]) -> None:
    """Run until SIGTERM."""
    if arguments[0] == SUPERVISOR:
        space, program = map(Path, arguments[1:])
        logging.basicConfig(level=logging.INFO)
        asyncio.run(Supervisor(SpaceDirectories(space), program, os.environ, time.monotonic).run())
    else:
        command = (sys.executable, "-m", "benchmarks.space.supervising", SUPERVISOR, *arguments)
        first_process.keep_running(command, os.environ, RESTARTS, lambda _end, _pause_s: None, time.monotonic)


if __name__ == "__main__":
    main(sys.argv[1:])
