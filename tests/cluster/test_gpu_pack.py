"""What travels to a GPU machine: parts that are small enough, lines of a lock file, and what comes out there."""

import io
import lzma
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.gpu_machine import pack, unpack


@given(sizes=st.lists(st.integers(0, 30), max_size=12), limit=st.integers(1, 40))
def test_every_file_is_in_one_part_and_parts_are_small_enough(sizes: list[int], limit: int) -> None:
    files = {Path(str(number)): size for number, size in enumerate(sizes)}
    parts = pack.divided(files, limit)
    assert sorted(path for part in parts for path in part) == sorted(files)
    assert all(len(part) == 1 or sum(files[path] for path in part) <= limit for part in parts)


def test_a_lock_file_s_lines_are_taken_with_their_hashes() -> None:
    first = "one==1 \\\n    --hash=sha256:aa\n    # via two\n"
    others = "two==2 \\\n    --hash=sha256:bb\none-more==3 \\\n    --hash=sha256:cc\n"
    assert pack.pinned_in(first + others, ["one"]) == first


def archive(part: Path, name: str, files: dict[str, str]) -> None:
    with lzma.open(part / name, "wb") as stream, tarfile.open(fileobj=stream, mode="w") as written:
        for path, text in files.items():
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode = len(text), 0o755
            written.addfile(entry, io.BytesIO(text.encode()))


def test_parts_add_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two archives of a part share a folder that neither has as an entry, and are unpacked side by side."""
    monkeypatch.setattr(unpack, "REPOSITORY", tmp_path / "repository")
    target = tmp_path / "target"
    for number, files in enumerate(({"cache/a/one": "1"}, {"bin/busybox": "b"})):
        part = tmp_path / f"part-{number}"
        part.mkdir()
        archive(part, f"item-{number}.tar.xz", files)
        archive(part, f"other-{number}.tar.xz", {f"cache/a/more-{number}": "2"})
        unpack.main(part, target)
    archive(part, "limiter-0.tar.xz", {"repository/limiter/libvgpushare.so": "shim"})
    unpack.main(part, target)
    assert sorted(path.name for path in (target / "cache/a").iterdir()) == ["more-0", "more-1", "one"]
    assert (target / "cache/a/one").stat().st_mode & 0o111
    assert f"XDG_CACHE_HOME={target}/cache" in (target / "environment").read_text()
    assert (tmp_path / "repository/limiter/libvgpushare.so").read_text() == "shim"
