"""A folder as a layer of an image: a gzipped tar file, whose bytes follow from names, contents and executable bits.

Owners, times and umask of the build leave no trace. gzip's bytes depend on the zlib of this Python, `diff_id` does not.
"""

import gzip
import hashlib
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, cast

_STICKY: Final = "tmp"  # /tmp is writable by every user


@dataclass(frozen=True, slots=True)
class ImageLayer:
    """A packed layer: its file, that file's digest and size in bytes, and the digest of the tar file in it."""

    path: Path
    digest: str
    size: int
    diff_id: str


def pack(tree: Path, target: Path, level: int = 6) -> ImageLayer:
    """Write the contents of the folder `tree` to `target`; `level` is gzip's."""
    with target.open("wb") as raw, gzip.GzipFile("", "wb", level, raw, mtime=0) as packed:
        content = _Hashing(packed)
        with tarfile.open(fileobj=cast("IO[bytes]", content), mode="w|", format=tarfile.PAX_FORMAT) as archive:
            for path in sorted(tree.iterdir()):
                archive.add(path, path.name, filter=normalized)
    return ImageLayer(target, digest(target), target.stat().st_size, f"sha256:{content.hash.hexdigest()}")


def normalized(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Return the entry as root's, without a time, with the modes 755, 644, or 1777 for /tmp."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    entry.mtime = 0
    entry.mode = _mode(entry)
    return entry


def _mode(entry: tarfile.TarInfo) -> int:
    if entry.name == _STICKY:
        return 0o1777
    return 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644


def digest(path: Path) -> str:
    """Digest of a file."""
    with path.open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"


class _Hashing:
    """Hashes what is written to a gzip file."""

    def __init__(self, target: gzip.GzipFile) -> None:
        self._target = target
        self.hash = hashlib.sha256()

    def write(self, data: bytes) -> int:
        self.hash.update(data)
        return self._target.write(data)
