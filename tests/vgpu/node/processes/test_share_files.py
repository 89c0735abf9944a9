"""What the node reads of containers with shares, from files that the containers write."""

import struct
from dataclasses import replace
from pathlib import Path

import pytest

from tests.vgpu.node.builders import allocation, bound, slices, uuid
from vgpu.adapters import procfs
from vgpu.domain.formats import region
from vgpu.domain.formats.limits import CardLimit, Limits, uuid_bytes
from vgpu.domain.identifiers import ContainerName
from vgpu.node.containers.allocations import Allocation
from vgpu.node.containers.state_files import StateFiles
from vgpu.node.processes import share_files
from vgpu.node.processes.share_files import RegionAccount
from vgpu.node.processes.unlimited import Share

CARD = uuid(0)
POD = bound("p")
USED_AT, PEAK_AT, VALID_AT, CALLS_AT = 256 + 16, 256 + 32, 256 + 48, region.SLOTS_AT + 24


@pytest.fixture
def files(tmp_path: Path) -> StateFiles:
    return StateFiles(tmp_path)


@pytest.fixture
def given(files: StateFiles) -> Allocation:
    """An allocation whose container's files are ready, with a limit of 1,000 bytes."""
    library = files.libraries.install(b"library")
    made = replace(allocation(slices(0, 0), POD, library=library), is_proven=True)
    files.prepare(made.id)
    files.copy_library(made.id, library)
    files.write_limits(made.id, Limits((CardLimit(CARD, 1000),)))
    return made


def charge(files: StateFiles, used: int, peak: int, calls: int = 0) -> None:
    with files.region("a1").open("r+b") as file:
        for at, data in {
            256: uuid_bytes(CARD),
            USED_AT: struct.pack("<Q", used),
            PEAK_AT: struct.pack("<Q", peak),
            VALID_AT: struct.pack("<I", 1),
            CALLS_AT: struct.pack("<Q", calls),
        }.items():
            file.seek(at)
            file.write(data)


def share(files: StateFiles, made: Allocation, ask: object = None) -> Share:
    _, shares = share_files.read_around([made], files, ask if callable(ask) else lambda: None)
    return shares[POD.uid, ContainerName("main")]


def test_the_share_of_a_container(files: StateFiles, given: Allocation) -> None:
    charge(files, 70, 90)
    found = share(files, given)
    assert found.libraries == {
        procfs.file_id(files.library("a1")),
        procfs.file_id(files.libraries.library(given.library)),
    }
    assert found.files == {
        "/run/vgpu/limits": frozenset({procfs.file_id(files.limits("a1"))}),
        "/run/vgpu/region": frozenset({procfs.file_id(files.region("a1"))}),
    }
    assert (found.limits, found.charged, found.problem) == ({CARD: 1000}, {CARD: 70}, "")


def test_memory_that_was_freed_or_allocated_meanwhile_counts(files: StateFiles, given: Allocation) -> None:
    charge(files, 70, 90)
    assert share(files, given, lambda: charge(files, 10, 90)).charged == {CARD: 70}
    assert share(files, given, lambda: charge(files, 80, 90)).charged == {CARD: 80}


@pytest.mark.parametrize("calls", [1 << 32, 1], ids=["a call meanwhile", "a call under way"])
def test_where_calls_change_memory_meanwhile_the_peak_counts(files: StateFiles, given: Allocation, calls: int) -> None:
    """Allocated after the first reading, and freed before the second."""
    charge(files, 70, 90)
    assert share(files, given, lambda: charge(files, 70, 90, calls)).charged == {CARD: 90}


def test_a_region_set_to_zero_by_its_container_says_nothing(files: StateFiles, given: Allocation) -> None:
    charge(files, 70, 90)
    files.region("a1").write_bytes(bytes(region.SIZE))
    found = share(files, given)
    assert found.charged == {}
    assert "magic" in found.problem
    files.region("a1").write_bytes(b"")
    assert "0 bytes" in share(files, given).problem


def test_a_region_of_another_release_is_not_judged(files: StateFiles, given: Allocation) -> None:
    (files.libraries.root / given.library / "region-header").write_bytes(region.new()[:8] + b"\7" + region.new()[9:])
    found = share(files, given)
    assert (found.charged, found.files, found.limits) == (None, {}, {CARD: 1000})


def test_missing_files_are_left_out(files: StateFiles, given: Allocation) -> None:
    files.remove("a1")
    found = share(files, given)
    assert found.limits == {}
    assert "No such file" in found.problem
    assert not any(found.files.values())


def test_accounts_of_several_cards() -> None:
    empty = RegionAccount()
    assert share_files.charged(empty, empty) == {}
