"""`vgpu`, or `python -m vgpu.cli`."""

import os
import secrets
import time
from datetime import datetime
from pathlib import Path

from limiter.host import Host
from vgpu.cli import app


def main() -> None:
    """Run the command line program, and exit with its code."""
    host = Host(time.monotonic_ns, time.sleep, lambda: secrets.token_hex(4))
    app.build(os.environ, host, Path.home(), lambda: datetime.now().astimezone())()


if __name__ == "__main__":
    main()
