"""The spill: appended, synced, read in order; torn tails, full disks and damaged lines."""

import contextlib
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.history.recording import lines
from extender.history.recording.events import Watched
from extender.history.recording.recorder import BATCH
from extender.history.recording.spill import Spill, segments
from extender.history.recording.spill_reader import SpillReader
from extender.settings import ExtenderSettings
from vgpu.domain.errors import MalformedEvent, SpillFull, UnusableSetting


def marks(*times: int) -> list[Watched]:
    return [Watched("r", time) for time in times]


def write(spill: Spill, *times: int) -> None:
    spill.append([lines.encode(mark) for mark in marks(*times)])


_open: list[Spill] = []


def opened(folder: Path, *, max_bytes: int = 1 << 20, segment_bytes: int = 200) -> Spill:
    """Return a new writer; the one before is closed, as where its process has ended."""
    while _open:
        _open.pop().close()
    _open.append(Spill(folder, max_bytes=max_bytes, segment_bytes=segment_bytes))
    return _open[0]


def test_records_are_read_in_order_over_segments_and_writers(tmp_path: Path) -> None:
    reader = SpillReader(tmp_path)
    assert reader.read(10) == []
    first = opened(tmp_path)
    for time in range(10):
        write(first, time)
    assert reader.read(4) == marks(0, 1, 2, 3)
    second = opened(tmp_path)
    write(second, 10, 11)
    assert reader.read(100) == marks(*range(4, 12))
    assert reader.next_line == second.next_line
    reader.delete_read()
    assert len(segments(tmp_path)) == 1
    assert opened(tmp_path).next_line == 13


def test_a_folder_has_one_writer(tmp_path: Path) -> None:
    opened(tmp_path)
    with pytest.raises(UnusableSetting, match="another extender"):
        Spill(tmp_path, max_bytes=1)


def test_a_reader_that_starts_again_begins_with_what_is_left(tmp_path: Path) -> None:
    spill = opened(tmp_path)
    write(spill, 1, 2)
    reader = SpillReader(tmp_path)
    assert reader.read(1) == marks(1)
    assert SpillReader(tmp_path).read(9) == marks(1, 2)
    reader.rewind()
    assert reader.read(9) == marks(1, 2)


def test_what_was_not_stored_is_read_again_and_what_was_stored_is_not(tmp_path: Path) -> None:
    write(opened(tmp_path, segment_bytes=1 << 20), 1, 2, 3)
    reader = SpillReader(tmp_path)
    reader.read(1)
    reader.delete_read()
    assert reader.read(1) == marks(2)
    reader.rewind()
    assert reader.next_line == 2
    assert reader.read(9) == marks(2, 3)


@given(cut=st.integers(0, 400))
def test_a_torn_tail_loses_only_the_line_that_is_torn(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    folder = tmp_path_factory.mktemp("spill")
    write(opened(folder, segment_bytes=1 << 20), 1, 2, 3, 4)
    path = segments(folder)[0].path
    length = path.stat().st_size
    cut = min(cut, length)
    os.truncate(path, length - cut)
    left = (length - cut) * 4 // length
    spill = opened(folder)
    assert spill.recovery.torn_bytes == (length - cut) - left * length // 4
    write(spill, 9)
    assert SpillReader(folder).read(9) == marks(*range(1, left + 1), 9)
    assert spill.next_line == left + 2


def test_a_damaged_line_is_left_out_and_counted(tmp_path: Path) -> None:
    write(opened(tmp_path, segment_bytes=1 << 20), 1, 2, 3)
    path = segments(tmp_path)[0].path
    path.write_bytes(path.read_bytes().replace(b'"at_ms":2', b'"at_ms":7'))
    reader = SpillReader(tmp_path)
    assert reader.read(9) == marks(1, 3)
    assert (reader.unreadable, reader.next_line) == (1, 4)
    assert opened(tmp_path).recovery.torn_bytes == 0


def test_a_full_spill_takes_nothing_and_goes_on_when_it_was_read(tmp_path: Path) -> None:
    spill = opened(tmp_path, max_bytes=900)
    taken = 0
    with contextlib.suppress(SpillFull):
        while True:
            write(spill, taken)
            taken += 1
    reader = SpillReader(tmp_path)
    assert reader.read(100) == marks(*range(taken))
    reader.delete_read()
    write(spill, 100)
    assert reader.read(9) == marks(100)


def test_the_smallest_spill_that_can_be_set_goes_on_when_it_was_read(tmp_path: Path) -> None:
    """The reader never deletes the segment that is written, which may be the whole of a small spill."""
    (smallest,) = (
        rule.ge for rule in ExtenderSettings.model_fields["history_spill_mib"].metadata if hasattr(rule, "ge")
    )
    spill, reader = Spill(tmp_path, max_bytes=smallest << 20), SpillReader(tmp_path)
    batch = [lines.encode(Watched("r" * 1_000, n)) for n in range(BATCH)]
    for _ in range(2):
        with contextlib.suppress(SpillFull):
            while True:
                spill.append(batch)
        while reader.read(BATCH):
            reader.delete_read()
    spill.append(batch)


def test_after_a_failed_write_nothing_of_it_is_in_the_spill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spill = opened(tmp_path, segment_bytes=1 << 20)
    write(spill, 1)
    written = os.write

    def half(file: int, data: bytes) -> int:
        monkeypatch.setattr(os, "write", full)
        return written(file, data[: len(data) // 2])

    def full(file: int, data: bytes) -> int:  # noqa: ARG001 - os.write's arguments
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", half)
    with pytest.raises(OSError, match="No space"):
        write(spill, 2, 3)
    monkeypatch.setattr(os, "write", written)
    write(spill, 2, 3)
    assert SpillReader(tmp_path).read(9) == marks(1, 2, 3)
    assert spill.next_line == 4


@pytest.mark.parametrize(
    "line",
    [b"", b"garbage", b"00000000 {}", lines.encode(Watched("r", 1))[:-2]],
)
def test_other_lines_are_malformed(line: bytes) -> None:
    with pytest.raises(MalformedEvent):
        lines.decode(line)
