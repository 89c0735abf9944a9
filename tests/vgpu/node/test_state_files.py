"""The files that containers see: created, rewritten in place, and never replaced while a container uses them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.vgpu.node.builders import uuid
from vgpu import limits, region
from vgpu.limits import CardLimit, Limits
from vgpu.node import state_files
from vgpu.node.state_files import DENY, StateFiles

ROOT = Path(state_files.__file__).parents[2]
SOME = Limits((CardLimit(uuid(0), 1 << 30, 30),))


@pytest.fixture
def made(tmp_path: Path) -> StateFiles:
    made = StateFiles(tmp_path)
    made.allocations.joinpath("a").mkdir()
    made.prepare("a")
    return made


def test_a_new_allocation_denies_all_and_has_a_fresh_region(made: StateFiles) -> None:
    assert limits.decode(made.limits("a").read_bytes()) == DENY
    data = made.region("a").read_bytes()
    assert region.decode(data).cards == ()
    assert data[:32] == region.new()[:32]
    assert made.region("a").stat().st_mode & 0o777 == 0o666
    assert made.limits("a").stat().st_mode & 0o777 == 0o644
    assert made.region("a").stat().st_blocks * 512 >= region.SIZE
    assert made.allocations.joinpath("a", "region").resolve() == made.region("a")


def test_limits_change_in_place(made: StateFiles) -> None:
    with made.limits("a").open("rb") as mounted:
        made.write_limits("a", SOME)
        assert limits.decode(mounted.read()) == SOME


def test_a_rewrite_leaves_the_last_limits_in_the_other_slot(made: StateFiles) -> None:
    made.write_limits("a", SOME)
    made.write_limits("a", Limits((), priority=9))
    data = made.limits("a").read_bytes()
    assert limits.sequence(data) == 3
    torn = bytearray(data)
    torn[64 + 100] ^= 255  # damages the newer slot, so the older slot counts
    assert limits.decode(data).priority == 9
    assert limits.decode(bytes(torn)) == SOME


def test_a_restart_keeps_the_limits_and_renews_the_region(made: StateFiles) -> None:
    made.write_limits("a", SOME)
    with made.region("a").open("r+b") as running:
        running.write(b"x" * 100)
        made.prepare("a")
        assert running.seek(0) == 0
        assert running.read(1) == b"x"
    assert region.decode(made.region("a").read_bytes()).processes == ()
    assert limits.decode(made.limits("a").read_bytes()) == SOME
    assert not list(made.regions.glob(".*"))


@pytest.mark.parametrize("bytes_left", [b"", b"torn", bytes(limits.SIZE)])
def test_limits_that_cannot_be_read_are_replaced(made: StateFiles, bytes_left: bytes) -> None:
    made.limits("a").write_bytes(bytes_left)
    made.write_limits("a", SOME)
    assert limits.decode(made.limits("a").read_bytes()) == SOME


def test_files_of_a_lost_tmpfs_are_created_again(made: StateFiles) -> None:
    made.region("a").unlink()
    made.prepare("a")
    assert made.region("a").stat().st_size == region.SIZE


def test_a_removed_allocation_has_no_files(made: StateFiles) -> None:
    made.remove("a")
    assert not list(made.allocations.iterdir())
    assert not list(made.regions.iterdir())
    made.remove("a")


def test_a_library_is_installed_under_its_hash_and_never_changed(tmp_path: Path) -> None:
    made, source = StateFiles(tmp_path / "state"), tmp_path / "lib.so"
    source.write_bytes(b"one")
    first = made.install_library(source)
    inode = made.library(first).stat().st_ino
    assert made.install_library(source) == first
    assert made.library(first).stat().st_ino == inode
    source.write_bytes(b"two")
    second = made.install_library(source)
    assert made.library(first).read_bytes() == b"one"
    assert made.library(second).read_bytes() == b"two"
    assert made.preload(second).read_text() == "/usr/local/vgpu/libvgpushare.so\n"
    assert sorted(path.name for path in made.libraries.iterdir()) == sorted([first, second])
    assert made.library(second).stat().st_mode & 0o755 == 0o755


MOUNTS = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 8:2 / /var/lib/vgpu rw master:5 - ext4 /dev/sdb rw
31 22 8:2 / /var/lib/vgpu2 rw - ext4 /dev/sdb rw
32 22 8:2 / /srv rw,noatime shared:9 master:2 - ext4 /dev/sdb rw
"""


@pytest.mark.parametrize(
    ("path", "shared"),
    [("/var/lib/vgpu/regions", False), ("/var/lib/vgpu2", False), ("/srv/x", True), ("/var/lib", True)],
)
def test_regions_are_mounted_only_where_the_mount_is_shared(path: str, shared: bool) -> None:
    assert state_files.is_shared_mount(Path(path), MOUNTS) is shared


def test_without_a_size_nothing_is_mounted(made: StateFiles) -> None:
    assert made.mount_regions(0) is False
    assert not os.path.ismount(made.regions)


FULL = """
import sys
from pathlib import Path
from vgpu.node.state_files import StateFiles
made = StateFiles(Path(sys.argv[1]))
def more():
    made.allocations.joinpath(str(len(list(made.allocations.iterdir())))).mkdir()
    made.refresh_region(str(len(list(made.allocations.iterdir()))))
assert made.mount_regions(1)
more()
try:
    more()
except OSError as error:
    print(error.strerror)
assert made.mount_regions(8)
more()
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
def test_the_error_of_a_full_tmpfs_names_the_setting_and_a_larger_setting_grows_it(tmp_path: Path) -> None:
    """Runs in a mount namespace of its own, with shared propagation as on a node."""
    within = ["unshare", "--mount", "--propagation", "private", "sh", "-c", 'mount --make-rshared / && exec "$@"', "sh"]
    command = [*within, sys.executable, "-c", FULL, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    if "cannot change root" in done.stderr:
        pytest.skip("the root is no mount point here, as in a chroot")
    assert (done.returncode, done.stdout) == (0, "no room for one more container's region: raise --regions-mib\n"), done
