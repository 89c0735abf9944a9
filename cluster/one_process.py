"""A lock between the processes of this machine: what one of them prepares, the others find."""

import contextlib
import fcntl
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def at_a_time(file: Path) -> Iterator[None]:
    """Wait until no other process is in a block with the same `file`; it is made, and stays."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w") as opened:
        fcntl.flock(opened, fcntl.LOCK_EX)
        yield
