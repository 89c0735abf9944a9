"""Tables made from results: the newest figure of each row, its origin, and a mark at figures of changed code."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import limiter
from benchmarks.record import recorder, result
from benchmarks.record.result import Result, ResultError, ResultRow
from benchmarks.report import __main__ as report
from benchmarks.report import render
from benchmarks.report.tables import report_table
from benchmarks.report.tables.every_table import TABLES
from benchmarks.report.tables.report_table import Line, ReportTable
from benchmarks.tests import made_up

ROOT = Path(limiter.__file__).parents[1]
LINES = (Line("launch", ("costs.launch",)), Line("both", ("costs.launch", "costs.init")))
TABLE = ReportTable(
    "costs", "README.md", "call", {"native": report_table.native(1), "ratio": report_table.median(2)}, LINES
)


def lines(*results: Result, **today: str) -> list[str]:
    """The table and its notes, without empty lines and the rule below the head."""
    text = render.render(TABLE, render.newest(results, today))
    return [line for line in text.splitlines() if line and not line.startswith("|---")]


def test_a_row_without_a_result_is_not_measured() -> None:
    assert lines() == ["| call | native | ratio |", "| launch | not measured | |", "| both | not measured | |"]


def test_the_newest_result_of_each_row_is_used_and_named() -> None:
    old = made_up.run(made_up.cost(1.1), made_up.cost(1.2, "init"), date="2026-11-20T00:00:00Z", commit="0ld")
    new = made_up.run(made_up.cost(1.5))
    head, launch, both, *runs = lines(new, old)
    assert head == "| call | native | ratio | run |"
    assert (launch, both) == ("| launch | | 1.50 | 1 |", "| both | | 1.50, 1.20 | 1, 2 |")
    assert runs[0].startswith("Run 1: 2026-11-22, commit abc1234, NVIDIA H200, driver 580.1, CUDA 13.0; 16 x AMD EPYC")
    assert runs[1].startswith("Run 2: 2026-11-20, commit 0ld")


def test_one_origin_is_named_below_the_table() -> None:
    *_, note = lines(made_up.run(made_up.cost(1.5), made_up.cost(1.5, "init")))
    assert note.startswith("Measured 2026-11-22, commit abc1234, NVIDIA H200")


def test_a_missed_goal_is_bold_and_a_failure_says_so() -> None:
    failed = replace(made_up.cost(1, "init"), value=None, fault="cuInit: 100")
    _, launch, both, _ = lines(made_up.run(made_up.cost(1.5, fault="0.47 over"), failed))
    assert launch == "| launch | | **1.50** |"
    assert both == "| both | | **1.50**, **failed** |"


def test_a_line_may_show_only_the_figure_that_is_furthest_from_zero() -> None:
    table = replace(TABLE, largest_only=True)
    partly, whole = made_up.run(made_up.cost(0.5)), made_up.run(made_up.cost(0.5), made_up.cost(-1.2, "init"))
    assert "| both | | -1.20 |" in render.render(table, render.newest([whole], {}))
    assert "| 0.50, not measured |" in render.render(table, render.newest([partly], {}))


def test_counts_say_of_how_many() -> None:
    row = ResultRow(id="leaks", value=0, unit="faults", details={"of": 32})
    assert report_table.median(1)(row) == "0 of 32"


def test_figures_of_changed_code_are_marked() -> None:
    run = made_up.run(made_up.cost(1.5), fingerprints={"limiter/src": "0a", "benchmarks/memory": "0b"})
    _, launch, *_, note = lines(run, **{"limiter/src": "0c", "benchmarks/memory": "0b"})
    assert launch == "| launch † | | 1.50 |"
    assert note == "† Code on which the figure depends has changed since the measurement: limiter/src."
    assert "†" not in "".join(lines(run, **{"limiter/src": "0a", "benchmarks/memory": "0b"}))


def test_tables_have_unique_names_and_every_row_id_is_valid() -> None:
    assert len({table.name for table in TABLES}) == len(TABLES)
    every = [row_id for table in TABLES for row_id in table.row_ids]
    assert "costs.launch" in every
    assert "tenants.30-and-60.1-fixed-30" in every
    result.decode(result.encode(made_up.run(*(ResultRow(id=name, value=1, unit="") for name in every))))


def test_a_document_without_markers_is_refused() -> None:
    with pytest.raises(ResultError, match=r"README.md: must have `<!-- table costs -->` and .* once, has them 0 times"):
        report.fill("no table", [TABLE], {})


Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """The command over copies of the documents, whose tables are up to date without results: exit code and errors."""
    (tmp_path / "results").mkdir()
    for name in {table.document for table in TABLES}:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text((ROOT / name).read_text())

    def made(*arguments: str) -> tuple[int, str]:
        folders = ("--results", str(tmp_path / "results"), "--documents", str(tmp_path))
        monkeypatch.setattr(sys, "argv", ["report", *folders, *arguments])
        return report.main(), capsys.readouterr().err

    assert made() == (0, "")
    return made


def test_check_fails_until_the_tables_are_made_again(run: Run, tmp_path: Path) -> None:
    assert run("--check") == (0, "")
    recorder.write(tmp_path / "results" / "a.json", made_up.run(made_up.cost(1.987)))
    before = (tmp_path / report_table.DETAILS).read_text()
    code, errors = run("--check")
    assert code == 1
    assert "benchmarks/README.md: its tables are not up to date" in errors
    assert "run `python -m benchmarks.report`" in errors
    assert (tmp_path / report_table.DETAILS).read_text() == before
    assert run() == (0, "")
    assert (
        "| launch | 3.00 | 5.96 | 1.987 | 1.987 to 1.987 | <= 1.03 |" in (tmp_path / report_table.DETAILS).read_text()
    )
    assert run("--check") == (0, "")


def test_a_result_whose_figures_newer_results_have_is_named(run: Run, tmp_path: Path) -> None:
    recorder.write(tmp_path / "results" / "a" / "new.json", made_up.run(made_up.cost(1.987)))
    recorder.write(tmp_path / "results" / "a" / "old.json", made_up.run(made_up.cost(1.5), date="2026-11-20T00:00:00Z"))
    assert run() == (0, f"{tmp_path}/results/a/old.json: no table cites this result\n")


def test_every_result_of_the_repository_lies_where_it_is_written_and_is_cited() -> None:
    results = report.load(recorder.RESULTS)
    misplaced = [str(path) for path, run in results.items() if path != recorder.RESULTS / recorder.file_name(run)]
    assert not misplaced
    assert not report.uncited(results, render.newest(results.values(), {}))


def test_simulated_results_are_used_only_when_asked(run: Run, tmp_path: Path) -> None:
    recorder.write(tmp_path / "results" / "a.json", made_up.run(made_up.cost(1.987), simulated=True))
    assert run("--check")[0] == 0
    assert run("--check", "--simulated")[0] == 1


@pytest.mark.heavy
def test_a_file_that_is_no_result_is_named(tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text('{"leaks": []}')
    command = [sys.executable, "-m", "benchmarks.report", "--check", "--results", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "old.json: version: must be 1, is None" in done.stderr
