"""The fault matrix of groups in space: what counts as a fault, and a few cases on simulated cards."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import limiter
from benchmarks.record import result
from benchmarks.report.tables.space import SPACE_FAULTS
from benchmarks.space import faults
from benchmarks.space.faults import FaultCase
from simgpu.world import World

ROOT = Path(limiter.__file__).parents[1]
WHO = ("supervisor, group", "supervisor, other", "region, hit", "region, neighbour", "region, elsewhere")
QUIET = FaultCase("abort", faults.abort)
TOLD = FaultCase("illegal access", faults.illegal_access, spares_group=False, is_told=True)


def details(*told: str, stall_ms: float = 20.0, left: tuple[str, ...] = ()) -> dict[str, Any]:
    who = {name: name in told for name in WHO}
    return {"stall_before_ms": 10.0, "stall_ms": stall_ms, "told": who, "left": list(left), "wrong": []}


def test_a_case_in_which_all_is_as_it_must_be_has_no_fault() -> None:
    assert faults.judged(QUIET, 0.5, details()).fault == ""
    assert faults.judged(TOLD, 9.9, details("region, hit")).fault == ""


@pytest.mark.parametrize(
    ("case", "served_s", "found", "fault"),
    [
        (TOLD, 0.5, details(), "the group is not told"),
        (QUIET, 0.5, details("supervisor, group"), "the group is told of a fault"),
        (TOLD, 0.5, details("region, hit", "region, elsewhere"), "another group is told"),
        (QUIET, 0.5, details(stall_ms=301), "fixed 30 waits for 301 ms"),
        (QUIET, None, details(), "no new member is served"),
        (QUIET, 10.1, details(), "a new member waits for too long"),
        (QUIET, 0.5, details(left=("7 of MPS",)), "left: 7 of MPS"),
    ],
)
def test_what_is_not_as_it_must_be_is_named(
    case: FaultCase, served_s: float | None, found: dict[str, Any], fault: str
) -> None:
    assert faults.judged(case, served_s, found).fault == fault


def test_the_table_shows_the_row_of_a_case() -> None:
    row = faults.judged(QUIET, 0.54, details("supervisor, group", stall_ms=301.4))
    cells = [cell(row) for cell in SPACE_FAULTS.columns.values()]
    assert cells[:5] == ["**0.5**", "<= 10", "10", "301", "supervisor, group"]
    assert cells[5] == "the group is told of a fault; fixed 30 waits for 301 ms"
    assert set(SPACE_FAULTS.row_ids) == {faults.row_id(case.name) for case in faults.CASES}


@pytest.mark.slow
def test_cases_on_simulated_cards_touch_their_group_only(world: World, tmp_path: Path) -> None:
    path = tmp_path / "figures.json"
    names = ("illegal access, another", "kill -9", "supervisor killed")
    command = [sys.executable, "-m", "benchmarks.space.faults", *names, "--json", str(path)]
    done = subprocess.run(command, env=world.environment(), cwd=ROOT, capture_output=True, text=True, check=False)
    rows = result.decode(path.read_text()).rows
    assert [row.fault for row in rows if not row.fault.startswith("fixed 30 waits")] == [""] * len(rows), done.stdout
    assert [row.details["told"]["region, hit"] for row in rows] == [True, False, False]
