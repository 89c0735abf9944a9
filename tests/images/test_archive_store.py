"""Downloaded packages are kept, so that a version may leave the mirrors."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import pytest

from images import archive_store
from images.debian import Package, PackageError


def package(name: str) -> Package:
    return Package("amd64", name, "1.0", hashlib.sha256(name.encode()).hexdigest())


class Mirror:
    """Has the packages whose content is their name; counts what is asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.asked: list[list[str]] = []

    def download(self, packages: Sequence[Package]) -> list[Path]:
        self.asked.append([pinned.name for pinned in packages])
        paths = [self.folder / f"{pinned.name}_1.0_amd64.deb" for pinned in packages]
        for pinned, path in zip(packages, paths, strict=True):
            path.write_text(pinned.name)
        return paths


@pytest.fixture
def mirror(tmp_path: Path) -> Mirror:
    return Mirror(tmp_path)


def test_only_what_is_lacking_is_downloaded_and_the_order_is_kept(mirror: Mirror, tmp_path: Path) -> None:
    store = tmp_path / "store"
    archive_store.fetch([package("b")], store, lambda: mirror)
    found = archive_store.fetch([package("c"), package("b"), package("a")], store, lambda: mirror)
    assert mirror.asked == [["b"], ["c", "a"]]
    assert [path.name for path in found] == ["c_1.0_amd64.deb", "b_1.0_amd64.deb", "a_1.0_amd64.deb"]
    assert [path.read_text() for path in found] == ["c", "b", "a"]


def test_what_is_kept_needs_no_mirror(mirror: Mirror, tmp_path: Path) -> None:
    def gone() -> Mirror:
        raise PackageError("no mirror")

    archive_store.fetch([package("a")], tmp_path / "store", lambda: mirror)
    assert len(archive_store.fetch([package("a")], tmp_path / "store", gone)) == 1
    with pytest.raises(PackageError):
        archive_store.fetch([package("b")], tmp_path / "store", gone)


def test_a_damaged_file_is_downloaded_again(mirror: Mirror, tmp_path: Path) -> None:
    (path,) = archive_store.fetch([package("a")], tmp_path / "store", lambda: mirror)
    path.write_text("damaged")
    (path,) = archive_store.fetch([package("a")], tmp_path / "store", lambda: mirror)
    assert path.read_text() == "a"
