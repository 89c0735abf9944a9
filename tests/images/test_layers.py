"""A layer's bytes follow from its files alone."""

import gzip
import hashlib
import io
import os
import tarfile
from pathlib import Path

import pytest

from images import layers


def tree(folder: Path, *, mode: int = 0o644, time: int = 0) -> Path:
    for name in ("usr/bin", "tmp"):
        (folder / name).mkdir(parents=True)
    (folder / "usr/bin/python3.11").write_text("program")
    (folder / "usr/bin/python3.11").chmod(0o711)
    (folder / "usr/bin/python").symlink_to("python3.11")
    (folder / "data").write_text("data")
    (folder / "data").chmod(mode)
    os.utime(folder / "data", (time, time))
    return folder


def test_times_and_modes_of_the_build_leave_no_trace(tmp_path: Path) -> None:
    first = layers.pack(tree(tmp_path / "1"), tmp_path / "1.gz")
    second = layers.pack(tree(tmp_path / "2", mode=0o660, time=1_700_000_000), tmp_path / "2.gz")
    assert (first.digest, first.size, first.diff_id) == (second.digest, second.size, second.diff_id)
    (tmp_path / "2" / "data").write_text("other")
    assert layers.pack(tmp_path / "2", tmp_path / "3.gz").diff_id != first.diff_id


def test_digests_are_those_of_the_file_and_of_the_tar_in_it(tmp_path: Path) -> None:
    layer = layers.pack(tree(tmp_path / "tree"), tmp_path / "layer.gz")
    packed = layer.path.read_bytes()
    assert (layer.digest, layer.size) == (f"sha256:{hashlib.sha256(packed).hexdigest()}", len(packed))
    assert layer.diff_id == f"sha256:{hashlib.sha256(gzip.decompress(packed)).hexdigest()}"


@pytest.mark.parametrize(
    ("name", "mode"), [("usr/bin/python3.11", 0o755), ("data", 0o644), ("usr", 0o755), ("tmp", 0o1777)]
)
def test_files_are_roots_and_readable_by_every_user(tmp_path: Path, name: str, mode: int) -> None:
    layer = layers.pack(tree(tmp_path / "tree", mode=0o600), tmp_path / "layer.gz")
    with tarfile.open(fileobj=io.BytesIO(layer.path.read_bytes())) as archive:
        entry = archive.getmember(name)
    assert (entry.uid, entry.gid, entry.uname, entry.mtime, entry.mode) == (0, 0, "root", 0, mode)
