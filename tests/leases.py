"""Leases on files, as a container may hold one on each file that it sees: whoever opens the file waits for 45 s."""

import fcntl
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Hold a lease on a file that nobody else has open; the signal that asks for it back is one that is ignored."""
    handle = os.open(path, os.O_RDONLY)
    try:
        fcntl.fcntl(handle, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        yield
    finally:
        os.close(handle)
