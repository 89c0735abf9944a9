"""Downloaded Debian packages, kept by their digest: a build works after their versions have left the mirrors.

A copy of the folder lets another machine build the same commit.
"""

import shutil
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from images import layers
from images.debian import Package


class PackageSource(Protocol):
    """Where packages come from."""

    def download(self, packages: Sequence[Package]) -> list[Path]:
        """Download packages and check their digests."""


def fetch(packages: Sequence[Package], store: Path, connect: Callable[[], PackageSource]) -> list[Path]:
    """Return the files of packages, in their order; `connect` is called only if the store lacks one of them."""
    lacking = [pinned for pinned in packages if _kept(pinned, store) is None]
    if lacking:
        for package, downloaded in zip(lacking, connect().download(lacking), strict=True):
            _keep(package, downloaded, store)
    found = [_kept(pinned, store) for pinned in packages]
    return [path for path in found if path is not None]


def _kept(package: Package, store: Path) -> Path | None:
    """Return the file of a package; a file that was damaged since is removed."""
    found = next((store / package.sha256).glob("*.deb"), None)
    if found is None or layers.digest(found) == f"sha256:{package.sha256}":
        return found
    shutil.rmtree(found.parent)
    return None


def _keep(package: Package, path: Path, store: Path) -> None:
    store.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=store) as scratch:
        folder = Path(scratch) / "package"
        folder.mkdir()
        shutil.copy(path, folder / path.name)
        with suppress(OSError):  # another process has kept the package meanwhile
            folder.rename(store / package.sha256)
