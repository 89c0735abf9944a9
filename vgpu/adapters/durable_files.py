"""Files that a power loss leaves whole: written beside their place, synced to the disk, and renamed."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path


def write(path: Path, content: bytes, mode: int = 0o600, prepare: Callable[[Path], None] = lambda _: None) -> None:
    """Put a file with this content at `path`; after a power loss the file is the old or the new one.

    `prepare` is called with the new file's path before the rename. Raises OSError, and leaves no file then.
    """
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(file.fileno(), mode)
            prepare(Path(name))
            os.fsync(file.fileno())
        Path(name).replace(path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Sync the names in a directory to the disk. Raises OSError."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
