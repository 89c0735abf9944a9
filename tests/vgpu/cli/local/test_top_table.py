"""The table of `vgpu top`."""

import io
import json
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from tests.hostile_pods import tenants
from tests.vgpu.cli.conftest import GIB, GPU
from vgpu.cli.local import allocations, top_table
from vgpu.cli.local.top_rows import TopRow
from vgpu.domain.formats.limits import ANY_GPU
from vgpu.domain.identifiers import CardUuid

FULLEST = TopRow(
    "a1b2c3d4", "python -m train --very --long", GPU, 999 * GIB - 1, 999 * GIB, "best-effort", 100, 100, 1.0, 1.0, 1.0,
    2**32 - 1, 2**32 - 1, 2**64 - 1,
)  # fmt: skip
QUIET = TopRow("e5", "x", ANY_GPU, 0, None, None, 0, 0, None, None, None, 0, 0, 0)


def shown(*rows: TopRow, width: int = 80) -> list[str]:
    console = Console(file=io.StringIO(), width=width)
    console.print(top_table.table(rows))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def test_eighty_columns_hold_the_fullest_row() -> None:
    head, row, quiet = shown(FULLEST, QUIET)
    assert max(map(len, (head, row, quiet))) <= 80
    assert head.split()[-9:] == ["CARD", "MEMORY", "ASKED", "1s%", "10s%", "thr%", "WAITS", "MAX", "REF"]
    for cell in ("a1b2c3d4", "python", "8f3c2a", "<999G/999G", "best 100", "4.3G", "72m", "18.4E"):
        assert cell in row
    assert quiet.split() == ["e5", "x", "*", "0/?", "?", "-", "-", "-", "0", "0", "0"]


def test_what_is_not_known_is_not_zero() -> None:
    unread = replace(QUIET, used_bytes=None, delayed_launches=None, longest_wait_us=None, refusals=None, policy="burst")
    assert shown(unread)[1].split() == ["e5", "x", "*", "?/-", "burst", "0", "-", "-", "-", "?", "?", "?"]


def test_groups_in_space_are_below_the_programs(capsys: pytest.CaptureFixture[str]) -> None:
    member = replace(FULLEST, policy="space", cores=30, space_group="team/models", share_1s=0.3, share_10s=None)
    rows = [member, replace(member, share_1s=0.4, used_bytes=GIB), QUIET]
    Console(width=80).print(top_table.shown(rows))
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert "space 30" in lines[1]
    assert lines[-2].split() == ["GROUP", "IN", "SPACE", "CARD", "MEMBERS", "MEMORY", "ASKED", "1s%", "10s%"]
    assert lines[-1].split() == ["team/models", "8f3c2a", "2", "1T/2T", "60", "40", "-"]
    Console(width=80).print(top_table.shown([QUIET]))
    assert "GROUP" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("used", "limit", "written"),
    [(GIB, 8 * GIB, "1G/8G"), (8 * GIB - 1, 8 * GIB, "<8G/8G"), (8 * GIB + 1, 8 * GIB, ">8G/8G"), (GIB, GIB, "1G/1G")],
)
def test_memory_that_is_not_the_limit_does_not_look_like_it(used: int, limit: int, written: str) -> None:
    assert top_table.memory(replace(FULLEST, used_bytes=used, limit_bytes=limit)) == written


def test_a_wide_terminal_shows_the_whole_name() -> None:
    assert "python -m train --very --long" in shown(FULLEST, width=120)[1]


def test_the_cards_of_a_job_are_shown_together_below_the_programs(capsys: pytest.CaptureFixture[str]) -> None:
    ranks = [
        replace(QUIET, id=f"r{n}", name=f"team/rank-{n}/main", gpu=CardUuid(f"GPU-{n}f3c2a10-1"), job="01ab01ab",
                policy="fixed", cores=50 - n, share_1s=0.2 + n / 10)
        for n in range(2)
    ]  # fmt: skip
    Console(width=80).print(top_table.shown(ranks))
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[-2].split()[:2] == ["JOB", "CONTAINERS"]
    assert lines[-2].split()[-4:] == ["CARDS", "ASKED", "1s%", "thr%"]
    assert lines[-1].startswith("01ab01ab team/rank-0/main, team/")
    assert lines[-1].split()[-6:] == ["0f3c2a", "1f3c2a", "fixed", "49", "20-30", "-"]
    Console(width=80).print(top_table.shown(ranks[:1]))
    assert "JOB" not in capsys.readouterr().out


def test_a_name_is_not_parsed_as_markup() -> None:
    assert "[red]x" in shown(replace(QUIET, name="[red]x"))[1]


@pytest.mark.parametrize(
    ("amount", "written"),
    [(0, "0"), (1 << 29, "512M"), (3 << 29, "1.5G"), (1000 << 20, "1G"), ((1 << 40) - 1, "1T"), (2**64 - 1, "16E")],
)
def test_sizes(amount: int, written: str) -> None:
    assert top_table.size(amount) == written


@pytest.mark.parametrize(
    ("us", "written"), [(0, "0"), (40, "40us"), (1500, "1.5ms"), (20_000, "20ms"), (12_000_000, "12s"), (2**32, "72m")]
)
def test_waits(us: int, written: str) -> None:
    assert top_table.duration(us) == written


@pytest.mark.parametrize(
    ("share", "written"), [(None, "-"), (0.0, "0"), (0.2983, "29.8"), (0.9999, "100"), (4.0, "400"), (1e9, "999")]
)
def test_shares(share: float | None, written: str) -> None:
    assert top_table.percent(share) == written


@given(amount=st.integers(0, 2**64 - 1), us=st.integers(0, 2**32 - 1))
def test_no_figure_is_longer_than_its_column(amount: int, us: int) -> None:
    assert max(map(len, (top_table.size(amount), top_table.count(amount), top_table.duration(us)))) <= 5


@pytest.mark.heavy
@given(tenants.texts)
def test_no_name_changes_the_lines_of_others(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        holder = {"namespace": "team", "name": text, "container": "main"}
        (Path(folder) / "allocations/a1b2").mkdir(parents=True)
        (Path(folder) / "allocations/a1b2/limits").touch()
        (Path(folder) / "allocations/a1b2/record.json").write_text(json.dumps({"holder": holder}))
        (allocation,) = allocations.read_all(Path(folder))
    found = shown(replace(FULLEST, name=allocation.name), QUIET)
    assert len(found) == 3
    assert found[0] == shown(FULLEST, QUIET)[0]
    assert found[2] == shown(FULLEST, QUIET)[2]
    assert found[1].isprintable()
    assert max(map(cell_len, found)) <= 80
