"""Which slots of a region belong to processes that have ended: by their file locks, and by /proc."""

import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from vgpu.adapters import process_use
from vgpu.adapters.slot_owners import SlotOwners
from vgpu.domain.formats import region
from vgpu.domain.formats.limits import uuid_bytes
from vgpu.domain.identifiers import CardUuid

GPU = CardUuid("GPU-8f3c2a10-1111-2222-3333-444455556666")
USED = region.SLOTS_AT + 3 * region.SLOT_SIZE
# Locks the byte of slot 3, and gives the lock up when told to.
LOCKS = """
import fcntl, os, struct, sys
handle = os.open(sys.argv[1], os.O_RDWR)
fcntl.fcntl(handle, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 3, 1, 0))
print(flush=True)
sys.stdin.readline()
os.close(handle)
print(flush=True)
sys.stdin.read()
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "region"


@pytest.fixture
def process(file: Path) -> Iterator[subprocess.Popen[str]]:
    """The owner of slot 3, which uses 70 of 100 bytes."""
    file.touch()
    with subprocess.Popen(
        [sys.executable, "-c", LOCKS, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as started:
        assert started.stdout is not None
        started.stdout.readline()
        namespace = Path(f"/proc/{started.pid}/ns/pid").stat().st_ino
        data = bytearray(region.new().ljust(region.SIZE, b"\0"))
        struct.pack_into("<16sQQQQI", data, 256, uuid_bytes(GPU), 100, 200, 150, 0, 1)
        struct.pack_into("<IIQQ", data, USED, started.pid, 1, 7, namespace)
        struct.pack_into("<Q", data, USED + 64, 70)
        file.write_bytes(data)
        yield started
        started.kill()


def used(file: Path, owners: SlotOwners) -> int:
    data = file.read_bytes()
    handle = os.open(file, os.O_RDONLY)
    try:
        (card,) = region.cards(data, owners.ended(handle, data))
    finally:
        os.close(handle)
    return card.used_bytes


def test_a_killed_process_uses_nothing(file: Path, process: subprocess.Popen[str]) -> None:
    owners = SlotOwners()
    assert used(file, owners) == 100
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # a zombie uses nothing either
    assert used(file, owners) == 30
    process.wait()
    assert (used(file, owners), used(file, SlotOwners())) == (30, 30)


def test_a_process_that_has_closed_the_file_lives(file: Path, process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    process.stdout.readline()
    owners = SlotOwners()
    assert used(file, owners) == 100
    process.kill()
    process.wait()
    assert used(file, owners) == 30


def test_a_slot_without_a_lock_is_not_judged(file: Path, process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    with file.open("r+b") as opened:
        opened.seek(USED + 4)
        opened.write(bytes(4))
    assert used(file, SlotOwners()) == 100


def test_a_slot_that_says_more_than_its_card_leaves_what_no_process_owns(
    file: Path, process: subprocess.Popen[str]
) -> None:
    process.kill()
    process.wait()
    with file.open("r+b") as opened:
        opened.seek(USED + 64)
        opened.write(struct.pack("<Q", 1 << 60))
    assert used(file, SlotOwners()) == 0


def test_regions_with_ever_more_ended_processes_make_no_other_be_looked_at_again(
    file: Path, process: subprocess.Popen[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = []

    def none_lives(owners: object) -> set[tuple[int, int]]:
        looks.append(owners)
        return set()

    monkeypatch.setattr(process_use, "found_here", none_lives)
    process.kill()
    process.wait()
    owners = SlotOwners()
    assert used(file, owners) == 30
    for number in range(6):
        crowd, data = tmp_path / f"crowd-{number}", bytearray(file.read_bytes())
        for slot in range(region.MAX_PROCESSES):
            at = region.SLOTS_AT + slot * region.SLOT_SIZE
            struct.pack_into("<IIQQ", data, at, 5000 + slot, 1, number, 1)
        crowd.write_bytes(data)
        used(crowd, owners)
    assert len(looks) == 7
    assert used(file, owners) == 30
    assert len(looks) == 7
