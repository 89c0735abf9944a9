"""What travels to a GPU machine: parts that are small enough, lines of a lock file, and what comes out there."""

import io
import lzma
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster import missing
from cluster.gpu_machine import cluster, image, pack, unpack
from vgpu.domain.errors import NvmlError


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
        unpack.unpack(part, target)
    archive(part, "limiter-0.tar.xz", {"repository/limiter/libvgpushare.so": "shim"})
    unpack.unpack(part, target)
    assert sorted(path.name for path in (target / "cache/a").iterdir()) == ["more-0", "more-1", "one"]
    assert (target / "cache/a/one").stat().st_mode & 0o111
    assert f"XDG_CACHE_HOME={target}/cache" in (target / "environment").read_text()
    assert (tmp_path / "repository/limiter/libvgpushare.so").read_text() == "shim"


def test_the_shell_reads_the_environment_of_a_folder_with_a_space(tmp_path: Path) -> None:
    part, target = tmp_path / "part", tmp_path / "a target"
    part.mkdir()
    archive(part, "programs-0.tar.xz", {"bin/tool": "#!/bin/sh\necho found\n"})
    unpack.unpack(part, target)
    script = f". '{target}/environment'; tool; echo $VGPU_IMAGES"
    printed = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, check=True).stdout
    assert printed.splitlines() == ["found", f"{target}/images"]


@pytest.mark.parametrize("name", ["part-99", "part-1/items.tar.xz", "."])
def test_what_is_no_part_is_refused_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    (tmp_path / "part-1").mkdir()
    (tmp_path / "part-1" / "items.tar.xz").touch()
    with pytest.raises(SystemExit, match="1"):
        unpack.main([str(tmp_path / name), str(tmp_path / "target")])
    assert "it is not a part that `make gpu-pack` has written" in capsys.readouterr().err
    assert not (tmp_path / "target").exists()


@pytest.mark.parametrize("kept", [0, 40, 100])
def test_a_damaged_archive_is_named(tmp_path: Path, kept: int) -> None:
    """Cut off, or with four changed bytes."""
    archive(tmp_path, "programs-0.tar.xz", {"bin/tool": "x" * 5000})
    whole = (tmp_path / "programs-0.tar.xz").read_bytes()
    changed = whole[:100] + b"????" + whole[104:] if kept == 100 else whole[: len(whole) * kept // 100]
    (tmp_path / "programs-0.tar.xz").write_bytes(changed)
    with pytest.raises(unpack.NotUnpackedError, match=r"programs-0\.tar\.xz is damaged .*bring it again"):
        unpack.unpack(tmp_path, tmp_path / "target")


def test_packages_for_another_python_are_refused_by_its_version(tmp_path: Path) -> None:
    archive(tmp_path, "packages-2.7-0.tar.xz", {"wheels/one.whl": ""})
    own = "{}.{}".format(*sys.version_info)
    with pytest.raises(unpack.NotUnpackedError, match=rf"for Python 2\.7, and this is {own}: run it with python2\.7"):
        unpack.unpack(tmp_path, tmp_path / "target")


def test_parts_of_an_earlier_pack_do_not_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unpacked last, an older item would replace a newer one."""
    item = tmp_path / "item"
    item.write_text("content")
    stale = tmp_path / "packed" / "part-7"
    stale.mkdir(parents=True)
    monkeypatch.setattr(pack, "_items", lambda _: {"programs": {"bin/item": item}})
    pack.pack(tmp_path / "packed")
    assert sorted(path.name for path in (tmp_path / "packed").iterdir()) == ["items", "part-1"]


def test_a_machine_that_lacks_something_is_told_before_anything_is_packed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def lacks(_: Path) -> None:
        raise missing.Missing(["the program runc"])

    monkeypatch.setattr(pack, "_items", lacks)
    monkeypatch.setattr(sys, "argv", ["pack", str(tmp_path)])
    with pytest.raises(SystemExit, match="1"):
        pack.main()
    assert capsys.readouterr().err == "python -m cluster.gpu_machine.pack: cannot pack here: the program runc\n"


def test_a_machine_without_a_driver_is_told_before_the_cluster_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> None:
        raise NvmlError(12, "LibraryNotFound")

    monkeypatch.setattr(cluster, "Nvml", fails)
    with pytest.raises(missing.Missing, match="an NVIDIA driver that works"):
        cluster.GpuMachineCluster()


def test_a_folder_without_images_is_refused(tmp_path: Path) -> None:
    with pytest.raises(missing.Missing, match=r"archives of images .*VGPU_IMAGES names"):
        cluster.provided_images(tmp_path / "nowhere")


@pytest.mark.parametrize("named", ["/nonexistent/python", "false", "/etc/passwd"])
def test_a_named_python_without_pytorch_is_refused(monkeypatch: pytest.MonkeyPatch, named: str) -> None:
    monkeypatch.setenv(image.INTERPRETER, named)
    image.interpreter.cache_clear()
    with pytest.raises(missing.Missing, match=f"{named}, which {image.INTERPRETER} names, is not one"):
        image.interpreter()
