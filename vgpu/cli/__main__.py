"""`vgpu`, or `python -m vgpu.cli`."""

import os
import secrets
import sys
import time
from datetime import datetime
from pathlib import Path

from limiter.host import Host
from vgpu.cli import app, streams

PLUGIN = "kubectl-vgpu"


def main() -> None:
    """Run the command line program, and exit with its code."""
    streams.prepare()
    host = Host(time.monotonic_ns, time.sleep, lambda: secrets.token_hex(4))
    is_plugin = Path(sys.argv[0]).name == PLUGIN
    streams.guarded(app.build(os.environ, host, Path.home(), lambda: datetime.now().astimezone(), is_plugin=is_plugin))


if __name__ == "__main__":
    main()
