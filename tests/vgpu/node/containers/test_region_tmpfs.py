"""Each region on a tmpfs of its own: a container that enlarges its region harms no other container.

Only root can mount. Each test runs in a mount namespace of its own, with shared propagation as on a node.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")

BEGIN = """
import errno, os, sys
from pathlib import Path
from vgpu.domain.formats import region
from vgpu.domain.errors import StateUnusable
from vgpu.node.containers.state_files import StateFiles
state = Path(sys.argv[1])

def add(files, name):
    files.allocations.joinpath(name).mkdir()
    files.prepare(name)
    region.decode(files.region(name).read_bytes())

def fill(path):
    # As a container does: it opens the file for writing and enlarges it in every way there is.
    with path.open("r+b") as file:
        file.truncate(1 << 40)
        for write in (lambda: os.posix_fallocate(file.fileno(), 0, 1 << 40), lambda: endless(file)):
            try:
                write()
            except OSError as error:
                assert error.errno == errno.ENOSPC, error

def endless(file):
    file.seek(0)
    while True:
        file.write(bytes(1 << 20))

def mounted():
    return [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines() if " vgpu " in line]
"""


def run(tmp_path: Path, script: str, propagation: str = "shared") -> None:
    within = ["unshare", "--mount", "--propagation", "private", "sh", "-c"]
    prepare = f'mount --bind "$1" "$1" && mount --make-{propagation} "$1" && shift && exec "$@"'
    command = [*within, prepare, "sh", str(tmp_path), sys.executable, "-c", BEGIN + script, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr


def test_a_container_that_fills_its_region_keeps_no_other_out(tmp_path: Path) -> None:
    run(
        tmp_path,
        """
files = StateFiles(state, region_tmpfs=True)
files.check_region_tmpfs(Path("/proc/self/mountinfo").read_text())
for name in "abc":
    add(files, name)
fill(files.region("a"))
fill(files.region("b"))
for n in range(50):
    add(files, f"new{n}")
used = sum(path.stat().st_blocks * 512 for path in files.allocations.glob("*/shared/region"))
assert used <= 53 * (region.SIZE + 4096), used
region.decode(files.region("c").read_bytes())
""",
    )


def test_a_container_that_filled_its_region_can_start_again_while_its_old_processes_live(tmp_path: Path) -> None:
    run(
        tmp_path,
        """
files = StateFiles(state, region_tmpfs=True)
add(files, "a")
with files.region("a").open("r+b") as running:
    fill(files.region("a"))
    files.prepare("a")
    assert region.decode(files.region("a").read_bytes()).processes == ()
    assert running.seek(0, os.SEEK_END) > region.SIZE
assert len(mounted()) == 1, mounted()
""",
    )


def test_files_and_extended_attributes_of_a_tmpfs_are_few(tmp_path: Path) -> None:
    run(
        tmp_path,
        """
files = StateFiles(state, region_tmpfs=True)
add(files, "a")
made = 0
try:
    while made < 100:
        files.region("a").with_name(f"f{made}").touch()
        made += 1
except OSError as error:
    assert error.errno == errno.ENOSPC
assert made < 10, made
""",
    )


def test_a_removed_allocation_leaves_no_mount_even_while_its_region_is_open(tmp_path: Path) -> None:
    run(
        tmp_path,
        """
files = StateFiles(state, region_tmpfs=True)
add(files, "a")
with files.region("a").open("rb"):
    StateFiles(state, region_tmpfs=True).remove("a")  # as after a restart of the plugin
assert mounted() == []
assert list(files.allocations.iterdir()) == []
""",
    )


def test_a_container_started_by_the_former_release_finds_its_region_at_the_path_that_it_mounts(tmp_path: Path) -> None:
    """The kubelet keeps the mounts of the answer to Allocate for the pod's life."""
    run(
        tmp_path,
        """
former = state / "regions" / "a"
former.parent.mkdir()
former.write_bytes(b"old")
(state / "allocations" / "a").mkdir(parents=True)
(state / "allocations" / "a" / "region").symlink_to("../../regions/a")
files = StateFiles(state, region_tmpfs=True)
files.prepare("a")
for path in (former, state / "allocations" / "a" / "region"):
    assert path.resolve() == files.region("a"), path
files.remove("a")
assert list(former.parent.iterdir()) == []
""",
    )


def test_without_tmpfs_a_mount_of_before_is_replaced_by_a_directory(tmp_path: Path) -> None:
    run(
        tmp_path,
        """
add(StateFiles(state, region_tmpfs=True), "a")
files = StateFiles(state)
files.prepare("a")
assert mounted() == []
region.decode(files.region("a").read_bytes())
""",
    )


def test_without_propagation_the_check_names_the_setting(tmp_path: Path) -> None:
    run(
        tmp_path,
        """
try:
    StateFiles(state, region_tmpfs=True).check_region_tmpfs(Path("/proc/self/mountinfo").read_text())
except StateUnusable as error:
    assert "mountPropagation: Bidirectional" in str(error), error
else:
    sys.exit("no error")
StateFiles(state).check_region_tmpfs(Path("/proc/self/mountinfo").read_text())
""",
        propagation="private",
    )
