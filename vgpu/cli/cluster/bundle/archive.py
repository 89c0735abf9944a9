"""The archive: a gzipped tar file that only its owner can read, complete or absent."""

import io
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Final

from vgpu.cli.failure import OUTPUT_FAILED, CommandFailed

MAX_BYTES: Final = 512 << 20  # of all files, before they are compressed
_MODE: Final = 0o600


class ArchiveFull(CommandFailed):
    """The archive takes no more files."""

    def __init__(self) -> None:
        super().__init__(f"left out: the archive has {MAX_BYTES >> 20} MiB already", OUTPUT_FAILED)


class Archive:
    """An archive that is being written; all files are in one folder."""

    def __init__(self, tar: tarfile.TarFile, folder: str, at: datetime) -> None:
        self._tar, self._folder, self._at = tar, folder, at
        self.bytes = 0

    def add(self, name: str, content: bytes, *, always: bool = False) -> None:
        """Add a file; its name may come from a server. Raises ArchiveFull, unless it is `always` added."""
        if not {".", ".."}.isdisjoint(name.split("/")):
            raise CommandFailed(f"{name}: no name of a file", OUTPUT_FAILED)
        if not always and self.bytes + len(content) > MAX_BYTES:
            raise ArchiveFull
        entry = tarfile.TarInfo(f"{self._folder}/{name}")
        entry.size, entry.mode, entry.mtime = len(content), _MODE, int(self._at.timestamp())
        self._tar.addfile(entry, io.BytesIO(content))
        self.bytes += len(content)


def path_of(wanted: Path, at: datetime) -> Path:
    """Return the archive's path: the wanted one, or in the wanted folder one that is named by the time."""
    return wanted / f"{_name(at)}.tar.gz" if wanted.is_dir() else wanted


def _name(at: datetime) -> str:
    return f"vgpu-bundle-{at:%Y%m%dT%H%M%SZ}"


@contextmanager
def written(path: Path, at: datetime) -> Iterator[Archive]:
    """Write an archive beside its place, and put it there when the statement's body has ended without an error.

    Raises CommandFailed where it cannot be written, and where something else than a file is there: a device such as
    /dev/null would be replaced.
    """
    if path.exists() and not path.is_file():
        raise CommandFailed(f"{path}: is not a regular file", OUTPUT_FAILED)
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        unfinished.unlink(missing_ok=True)
        with unfinished.open("xb") as file:
            unfinished.chmod(_MODE)
            with tarfile.open(fileobj=file, mode="w:gz") as tar:
                yield Archive(tar, _name(at), at)
        unfinished.replace(path)
    except OSError as error:
        raise CommandFailed(f"{path}: {error.strerror or error}", OUTPUT_FAILED) from error
    finally:
        with suppress(OSError):  # its folder is none, which the error above says
            unfinished.unlink(missing_ok=True)
