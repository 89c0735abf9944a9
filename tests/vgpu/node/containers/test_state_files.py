"""The files that containers see: created, rewritten in place, and never replaced while a container uses them."""

from pathlib import Path

import pytest

from tests import leases
from tests.vgpu.node.builders import uuid
from vgpu.domain.errors import StateUnusable
from vgpu.domain.formats import limits, region
from vgpu.domain.formats.limits import CardLimit, Limits
from vgpu.node.containers.state_files import DENY, StateFiles

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
    assert [path.name for path in made.region("a").parent.iterdir()] == ["region"]


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
    made.remove("a")


def test_no_file_is_mounted_into_two_containers(made: StateFiles) -> None:
    """A container can lease a file that it only reads; every other container that opens the file would wait."""
    name = made.libraries.install(b"library")
    made.allocations.joinpath("b").mkdir()
    for allocation in ("a", "b", "a"):
        made.copy_library(allocation, name)
    files = [
        made.libraries.library(name),
        *(path(container_id) for container_id in "ab" for path in (made.library, made.preload)),
    ]
    assert len({path.stat().st_ino for path in files}) == len(files)
    assert made.library("a").read_bytes() == b"library"
    assert [path.stat().st_mode & 0o777 for path in (made.library("a"), made.preload("a"))] == [0o755, 0o644]


def test_a_leased_library_is_replaced_without_waiting(made: StateFiles) -> None:
    name = made.libraries.install(b"library")
    made.copy_library("a", name)
    with leases.held(made.library("a")), leases.held(made.preload("a")):
        made.copy_library("a", name)
        assert made.library("a").read_bytes() == b"library"


def test_leased_limits_are_an_error_and_not_a_wait(made: StateFiles) -> None:
    with leases.held(made.limits("a")), pytest.raises(StateUnusable, match="lease"):
        made.write_limits("a", SOME)
    made.write_limits("a", SOME)
