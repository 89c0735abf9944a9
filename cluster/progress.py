"""Progress of the cluster: short lines on stderr, with the seconds since the start."""

import sys
import time

_STARTED = time.monotonic()


def say(text: str) -> None:
    sys.stderr.write(f"[{time.monotonic() - _STARTED:6.1f} s] {text}\n")
    sys.stderr.flush()
