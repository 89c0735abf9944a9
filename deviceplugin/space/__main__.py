"""`python -m deviceplugin.space`: keep the supervisor running, and live on where it is killed; SIGTERM ends both.

Daemons are left to this process when their supervisor ends, because a container ends with its first process.
"""

import logging
import os
import sys
import time
from typing import Final

from vgpu.adapters import extras

with extras.needed("cluster", by="deviceplugin.space"):
    from deviceplugin.space.settings import SpaceSettings
    from vgpu.adapters import first_process, log_lines
    from vgpu.adapters import settings as settings_reader
    from vgpu.adapters.child_process import ChildEnd, Restarts
    from vgpu.pacing.back_off import BackOff

RESTARTS: Final = Restarts(BackOff(first_s=0.2, longest_s=10.0), steady_s=60.0)

log = logging.getLogger("deviceplugin.space")


def main() -> None:
    """Run until SIGTERM; exit with status 2 on wrong settings."""
    settings = settings_reader.read(SpaceSettings, os.environ)
    log_lines.begin(settings.log_level)
    command = (sys.executable, "-m", "deviceplugin.space.supervising", *sys.argv[1:])
    first_process.keep_running(command, os.environ, RESTARTS, _report, time.monotonic)


def _report(end: ChildEnd, pause_s: float) -> None:
    log.error("the supervisor %s; it is started again in %.1f s", end, pause_s)


if __name__ == "__main__":
    main()
