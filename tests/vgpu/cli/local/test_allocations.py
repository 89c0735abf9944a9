"""Reading allocations: their files may be missing, damaged or hostile."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limiter import launch
from tests.vgpu.cli.conftest import CARD_AT, GIB, GPU, OTHER, Make, card_bytes
from vgpu.cli.local import allocations
from vgpu.cli.local.allocations import StateUnreadable
from vgpu.cli.local.top_rows import WaitSample, make_rows
from vgpu.cli.local.top_table import table
from vgpu.domain.formats import region
from vgpu.domain.formats.limits import SpaceMembership


def test_a_command_and_a_pod_have_names(home: Path, make: Make) -> None:
    make("b", card_bytes(used=GIB), card_bytes(OTHER), command="/usr/bin/python /a/train.py")
    make("a", pod=("default", "notebook", "main"))
    make("c")
    found = allocations.read_all(home)
    assert [allocation.name for allocation in found] == ["?", "default/notebook/main", "python /a/train.py"]
    assert [card.gpu for card in found[2].cards or ()] == [GPU, OTHER]
    assert found[1].cards == ()


def test_an_allocation_of_a_killed_vgpu_run_is_recognised(home: Path, make: Make) -> None:
    (make("a", command="train") / "owner").unlink()
    os.mkfifo(home / "allocations" / "a" / "owner")
    assert allocations.read_all(home)[0].name == "(left) train"


def test_a_member_of_a_group_has_its_name_or_the_beginning_of_its_fingerprint(home: Path, make: Make) -> None:
    wanted = replace(launch.parse("8GiB", 30, "burst"), space=SpaceMembership(bytes(range(16))))
    (make("a", wanted=wanted, command="a") / "space-group").write_text("team/models\x1b")
    make("b", wanted=wanted, command="b")
    (make("c", command="c") / "space-group").write_text("team/models")
    assert [found.group for found in allocations.read_all(home)] == ["team/models?", "00010203", ""]


@pytest.mark.parametrize("record", ["{}", "[]", "null", "x", '{"holder": null}', '{"holder": {"name": 1}}'])
def test_a_record_without_a_name(home: Path, make: Make, record: str) -> None:
    (make("a") / "record.json").write_text(record)
    assert allocations.read_all(home)[0].name == "?"


def test_control_characters_are_removed_from_names(home: Path, make: Make) -> None:
    make("a", command="evil \x1b[2J\r\n\x9b[red]")
    assert allocations.read_all(home)[0].name == "evil ?[2J???[red]"


def test_a_fifo_is_not_read(home: Path, make: Make) -> None:
    folder = make("a", command="x")
    for name in ("region", "command", "owner"):
        (folder / name).unlink()
        os.mkfifo(folder / name)
    (found,) = allocations.read_all(home)
    assert (found.name, found.cards) == ("?", None)


@pytest.mark.parametrize("size", [0, 100, region.SIZE - 1])
def test_a_region_cut_short_is_unknown_and_not_unused(home: Path, make: Make, size: int) -> None:
    os.truncate(make("a", card_bytes()) / "region", size)
    assert allocations.read_all(home)[0].cards is None


def test_a_region_is_read_up_to_its_size_only(home: Path, make: Make) -> None:
    os.truncate(make("a", card_bytes()) / "region", 1 << 40)
    assert len(allocations.read_all(home)[0].cards or ()) == 1


def test_damaged_or_missing_limits(home: Path, make: Make) -> None:
    (make("a") / "limits").write_bytes(b"torn")
    (make("b") / "limits").unlink()
    (found,) = allocations.read_all(home)
    assert found.limits is None
    row = make_rows([found], WaitSample(), 0)[0]
    assert (row.policy, row.limit_bytes) == (None, None)


@given(data=st.binary(min_size=256, max_size=1024), now=st.integers(0, 2**64 - 1))
@settings(max_examples=50)
def test_any_readable_region_can_be_shown(data: bytes, now: int) -> None:
    content = bytearray(region.new().ljust(region.SIZE, b"\0"))
    content[CARD_AT : CARD_AT + len(data)] = data
    cards = region.decode(bytes(content)).cards
    found = [allocations.MachineAllocation(Path("a"), "name", None, cards)]
    assert table(make_rows(found, WaitSample(), now)).row_count == max(1, len(cards))


def test_the_state_directories(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allocations, "NODE_STATE", tmp_path / "node")
    environment = {"VGPU_STATE_DIR": str(home)}
    assert allocations.state_directories(environment, None) == [home]
    (tmp_path / "node" / "allocations").mkdir(parents=True)
    assert allocations.state_directories(environment, None) == [home, tmp_path / "node"]
    assert allocations.state_directories(environment, tmp_path / "node") == [tmp_path / "node"]
    assert allocations.state_directories({"VGPU_STATE_DIR": "/none"}, None) == [tmp_path / "node"]


def test_a_directory_that_others_can_write_is_refused(home: Path) -> None:
    home.chmod(0o777)
    assert home not in allocations.state_directories({"VGPU_STATE_DIR": str(home)}, None)


def test_a_missing_state_directory_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StateUnreadable, match=r"--state: .*allocations cannot be read"):
        allocations.state_directories({}, tmp_path)
    assert allocations.read_all(tmp_path) == []
