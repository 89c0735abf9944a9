"""Archives whose bytes follow from names and contents: sorted, without owners and times of the build."""

import gzip
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from images.layers import normalized
from release.identity import ROOT

LICENCE: Final = "LICENSE"


def write(target: Path, folder: Path, root: str, left_out: Iterable[str] = ()) -> None:
    """Write a gzipped tar file with the files of a folder below `root`; links become what they point to.

    Our licence is in it, because those who pass an archive on must pass on the licence too.
    """
    names = set(left_out)
    paths = sorted(path for path in walk(folder) if not names & set(path.relative_to(folder).parts))
    with (
        target.open("wb") as raw,
        gzip.GzipFile("", "wb", 9, raw, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT, dereference=True) as archive,
    ):
        archive.add(ROOT / LICENCE, f"{root}/{LICENCE}", filter=normalized)
        for path in paths:
            archive.add(path, f"{root}/{path.relative_to(folder)}", recursive=False, filter=normalized)


def walk(folder: Path) -> Iterable[Path]:
    """Yield the files below a folder, through links to folders."""
    for path in folder.iterdir():
        if path.is_dir():
            yield from walk(path)
        else:
            yield path
