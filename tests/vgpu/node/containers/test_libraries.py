"""Installed limiters: whole after a power loss, never changed in place, and refused where no loader could map them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import own_mounts
from vgpu.domain.errors import StateUnusable
from vgpu.domain.formats import region
from vgpu.node.containers import selinux_labels
from vgpu.node.containers.libraries import LIBRARY, PRELOAD, REGION_HEADER, Libraries

ROOT = Path(__file__).parents[4]
NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount and label")


@pytest.fixture
def made(tmp_path: Path) -> Libraries:
    return Libraries(tmp_path / "lib")


def test_a_library_is_installed_under_its_hash_and_never_changed(made: Libraries) -> None:
    first = made.install(b"one")
    inode = made.library(first).stat().st_ino
    assert made.install(b"one") == first
    assert made.library(first).stat().st_ino == inode
    second = made.install(b"two")
    assert made.library(first).read_bytes() == b"one"
    assert made.library(second).read_bytes() == b"two"
    assert made.preload(second).read_text() == "/usr/local/vgpu/libvgpushare.so\n"
    assert sorted(path.name for path in made.root.iterdir()) == sorted([first, second])
    modes = [path.stat().st_mode & 0o777 for path in (made.root / second, made.library(second), made.preload(second))]
    assert modes == [0o755, 0o755, 0o644]


@pytest.mark.parametrize("file", [LIBRARY, PRELOAD])
@pytest.mark.parametrize("left", [None, b"", b"lib", bytes(7)], ids=["missing", "empty", "short", "zeros"])
def test_a_damaged_library_is_replaced_and_what_mapped_it_keeps_it(
    made: Libraries, file: str, left: bytes | None
) -> None:
    """After a power loss a file that was renamed without fsync may be empty, short, or zeros."""
    name = made.install(b"library")
    path = made.root / name / file
    expected = path.read_bytes()
    if left is None:
        path.unlink()
    else:
        path.write_bytes(left)
    with pytest.raises(StateUnusable, match="without limits"):
        made.check(name)
    running = None if left is None else path.open("rb")
    assert made.install(b"library") == name
    assert path.read_bytes() == expected
    if running is not None:
        assert running.read() == left
        running.close()
    made.remove_others({name})
    assert [entry.name for entry in made.root.iterdir()] == [name]


def test_a_library_is_synced_before_it_gets_its_name(made: Libraries, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: set[str] = set()
    renamed: list[bool] = []
    sync, rename = os.fsync, Path.rename

    def note_sync(handle: int) -> None:
        synced.add(str(Path(f"/proc/self/fd/{handle}").readlink()).rpartition("/")[2].lstrip(".").rpartition(".")[0])
        sync(handle)

    def note_rename(path: Path, target: Path) -> Path:
        renamed.append({LIBRARY, PRELOAD} <= synced)
        return rename(path, target)

    monkeypatch.setattr(os, "fsync", note_sync)
    monkeypatch.setattr(Path, "rename", note_rename)
    made.install(b"library")
    assert renamed == [True]


def test_a_library_keeps_the_region_that_it_reads(made: Libraries, monkeypatch: pytest.MonkeyPatch) -> None:
    old = made.install(b"old")
    assert made.region_header(old) == region.new()
    monkeypatch.setattr(region, "VERSION", 7)
    new = made.install(b"new")
    assert made.region_header(old) != made.region_header(new) == region.new()


def test_a_library_of_the_first_release_reads_the_first_region(made: Libraries) -> None:
    """0.1.0 installed no header; FIRST_HEADER is what it wrote into every region."""
    name = made.install(b"library")
    (made.root / name / REGION_HEADER).unlink()
    assert made.region_header(name) == region.FIRST_HEADER
    assert region.size_in(region.FIRST_HEADER) == 753920
    made.check(name)
    assert made.install(b"library") == name
    assert made.region_header(name) == region.new()


@pytest.mark.parametrize("left", [b"", b"VGPUREGN", bytes(256), region.new()[:12] + b"\xff" * 244])
def test_a_damaged_header_is_refused(made: Libraries, left: bytes) -> None:
    name = made.install(b"library")
    (made.root / name / REGION_HEADER).write_bytes(left)
    with pytest.raises(StateUnusable, match="region-header"):
        made.region_header(name)


NOEXEC = """
import subprocess, sys
from pathlib import Path
from vgpu.domain.errors import StateUnusable
from vgpu.node.containers.libraries import Libraries
made = Libraries(Path(sys.argv[1]) / "lib")
try:
    made.install(b"library")
except StateUnusable as error:
    assert "noexec" in str(error), error
else:
    sys.exit("installed on a file system without exec")
subprocess.run(["mount", "-o", "remount,exec", sys.argv[1]], check=True)
made.check(made.install(b"library"))
"""


@NEEDS_ROOT
def test_a_file_system_mounted_noexec_is_refused_until_it_is_mounted_again(tmp_path: Path) -> None:
    mount = 'mount -t tmpfs -o noexec tmpfs "$1"'
    command = own_mounts.command(mount, tmp_path, (sys.executable, "-c", NOEXEC, str(tmp_path)))
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr


@NEEDS_ROOT
def test_files_are_labelled_for_containers(tmp_path: Path) -> None:
    """Without SELinux the kernel stores the attribute all the same."""
    made = Libraries(tmp_path / "lib", selinux_labels.label)
    name = made.install(b"library")
    for path in (made.library(name), made.preload(name)):
        assert os.getxattr(path, "security.selinux") == b"system_u:object_r:container_file_t:s0\0"


def test_selinux_is_enabled_where_the_kernel_has_its_file_system() -> None:
    assert selinux_labels.is_selinux("nodev\tproc\nnodev\tselinuxfs\n\text4\n")
    assert not selinux_labels.is_selinux("nodev\tproc\n\text4\n")
    assert selinux_labels.labels("nodev\tselinuxfs\n") is selinux_labels.label
    selinux_labels.labels("nodev\tproc\n")(Path("/not/there"))  # does nothing
