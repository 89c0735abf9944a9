"""Regression sessions compare two checkouts in one table; unpacking writes the results of a session."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import limiter
from benchmarks.record import result, unpack
from benchmarks.record.result import Result, ResultError, ResultRow
from benchmarks.report import baseline, regression
from benchmarks.tests import made_up

ROOT = Path(limiter.__file__).parents[1]

# As limiter_memory and limiter_compute wrote it at commit 01f6ada.
LEAK = {"name": "plain", "start_free": 1, "fitted": 1, "left": 1, "refusal": "cuMemAlloc 2", "tried": 1, "peak": 1}
OLD_MEMORY = {
    "machine": "16 x AMD EPYC, Python 3.12.3",
    "commit": "unknown",
    "date": "2026-11-22",
    "gpu": "NVIDIA H200",
    "driver": "580.1",
    "limit_mib": 2048,
    "faults": 1,
    "start_mib": 500,
    "leaks": [{**LEAK, "faults": []}, {**LEAK, "name": "VMM handle", "faults": ["NVML over", "wrong code"]}],
    "costs": [
        {
            "name": "launch",
            "native_ns": 3000,
            "limited_ns": 3300,
            "ratio": 1.1,
            "middle": [1.0, 1.2],
            "goal": 1.03,
            "failed": [0, 0],
        }
    ],
}
OLD_COMPUTE = {
    "machine": "16 x AMD EPYC",
    "commit": "unknown",
    "date": "2026-11-22",
    "gpu": "NVIDIA H200",
    "faults": 1,
    "rows": [
        {
            "part": "tenants",
            "name": "30 and 60",
            "figure": "1: fixed 30 %",
            "native": 44.9,
            "seconds": 9.0,
            "goal": {"least": 28.5, "most": 31.5, "asked": 30},
            "rounds": [28.0, 30.0, 29.0],
            "host_late_ms": 1.0,
            "fault": "",
        },
        {"part": "same", "name": "two gloo ranks on one card", "fault": "timed out"},
    ],
}


def session(folder: Path, **figures: Any) -> Path:
    """A session.json with these steps; `memory_baseline` is memory-baseline."""
    steps = [{"name": name.replace("_", "-"), "figures": figure} for name, figure in figures.items()]
    path = folder / "session.json"
    path.write_text(json.dumps({"commit": "abc1234", "date": "2026-11-22", "steps": steps}))
    return path


def document(found: Result) -> Any:
    return json.loads(result.encode(found))


def test_the_old_json_has_the_row_ids_of_today() -> None:
    found = {row.id: row for row in baseline.rows(OLD_MEMORY)}
    assert [(row.id, row.value, row.fault) for row in found.values()] == [
        ("leaks.plain", 0, ""),
        ("leaks.vmm-handle", 2, "NVML over; wrong code"),
        ("leaks", 1, "VMM handle"),
        ("costs.launch", 1.1, "0.070 over"),
    ]
    shares = baseline.rows(OLD_COMPUTE)
    assert [(row.id, row.value, row.native, row.fault) for row in shares] == [
        ("tenants.30-and-60.1-fixed-30", 29.0, 44.9, ""),
        ("same.two-gloo-ranks-on-one-card", None, None, "timed out"),
    ]


@pytest.mark.parametrize("strange", [7, [], {"rows": [{}]}, {"costs": [{"name": "x"}]}, {"leaks": 3}])
def test_other_json_is_refused(strange: Any) -> None:
    with pytest.raises(ResultError, match="neither a result nor the JSON of an older benchmark"):
        baseline.rows(strange)


def test_the_comparison_has_baseline_now_and_ratio(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    now = made_up.run(made_up.cost(1.21, fault="0.18 over"), ResultRow(id="costs.fresh", value=2, unit="ratio"))
    path = session(tmp_path, memory=document(now), memory_baseline=OLD_MEMORY)
    assert regression.compare([path]) == 0
    said = capsys.readouterr().out
    assert "| costs.launch | | 1.1 | 1.21 | 1.100 | <= 1.03 | 0.18 over |" in said
    assert "| costs.fresh | | | 2 | | | |" in said
    assert "| leaks.vmm-handle | | 2 | | | | |" in said
    assert "memory-baseline: NVIDIA H200, commit unknown, 2026-11-22" in said


def test_a_fault_that_the_baseline_does_not_have_is_marked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = made_up.run(made_up.cost(1.02)), made_up.run(made_up.cost(1.05, fault="0.020 over"))
    path = session(tmp_path, memory=document(new), memory_baseline=document(old))
    assert regression.compare([path]) == 1
    assert "| ! 0.020 over |" in capsys.readouterr().out


def test_sessions_of_several_runs_are_compared_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folders = [tmp_path / "1", tmp_path / "2"]
    for folder in folders:
        folder.mkdir()
    paths = [
        session(folders[0], memory=document(made_up.run(made_up.cost(1.1)))),
        session(folders[1], memory_baseline=document(made_up.run(made_up.cost(1.1)))),
    ]
    assert regression.compare(paths) == 0
    assert "| costs.launch | | 1.1 | 1.1 | 1.000 |" in capsys.readouterr().out


OLD_SCRIPT = """
import json, os, sys
document = json.loads(open("old.json").read())
assert sys.argv[1:3] == ["leaks", "costs"], sys.argv
open(sys.argv[sys.argv.index("--json") + 1], "w").write(json.dumps(document))
print("in", os.getcwd(), os.environ["VGPU_COMMIT"])
"""


def test_a_step_of_the_baseline_runs_in_its_folder_without_git(tmp_path: Path) -> None:
    other = tmp_path / "other"
    (other / "benchmarks").mkdir(parents=True)
    (other / "benchmarks" / "__init__.py").touch()
    (other / "benchmarks" / "limiter_memory.py").write_text(OLD_SCRIPT)
    (other / "old.json").write_text(json.dumps(OLD_MEMORY))
    options = ("--out", str(tmp_path / "out"), "--baseline", str(other), "--baseline-commit", "01f6ada")
    command = [sys.executable, "-m", "benchmarks.gpu_session", "regression", "memory-baseline", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert f"in {other} 01f6ada" in done.stdout
    (step,) = json.loads((tmp_path / "out" / "session.json").read_text())["steps"]
    assert (step["verdict"], step["figures"]["commit"], step["figures"]["gpu"]) == ("good", "01f6ada", "NVIDIA H200")


def test_a_baseline_without_its_folder_is_refused(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.gpu_session", "regression", "--out", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "steps of a baseline need --baseline DIR" in done.stderr


def test_unpacking_writes_real_results_and_no_baseline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    real, quick = made_up.run(made_up.cost(1.1)), made_up.run(arguments=("costs", "--quick"))
    figures = {"memory": document(real), "quick": document(quick), "none": None, "memory_baseline": OLD_MEMORY}
    assert unpack.unpack(session(tmp_path, **figures), tmp_path / "results") == 0
    (path,) = (tmp_path / "results").rglob("*.json")
    assert path == tmp_path / "results/limiter_memory/2026-11-22-costs-abc1234.json"
    assert result.decode(path.read_text()) == real
    assert "quick: left out" in capsys.readouterr().out


def test_unpacking_takes_the_json_of_one_script(tmp_path: Path) -> None:
    path = tmp_path / "costs.json"
    path.write_text(result.encode(made_up.run(made_up.cost(1.1))))
    assert unpack.unpack(path, tmp_path / "results") == 0
    assert len(list((tmp_path / "results").rglob("*.json"))) == 1


def test_unpacking_names_figures_that_are_no_result(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert unpack.unpack(session(tmp_path, memory=OLD_MEMORY), tmp_path / "results") == 1
    assert "step memory: version: must be 1, is None" in capsys.readouterr().err
    (tmp_path / "session.json").write_text("[]")
    with pytest.raises(SystemExit, match=r"neither a session.json"):
        unpack.unpack(tmp_path / "session.json", tmp_path)
