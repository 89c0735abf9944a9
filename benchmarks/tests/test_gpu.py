"""On a real GPU: the campaigns of `benchmarks.limiter_races`, the leak table, preloaded libraries (`make gpu`)."""

import subprocess
import sys
from pathlib import Path

import pytest

import limiter
from benchmarks.record import result
from benchmarks.record.result import ResultRow

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]

ROOT = Path(limiter.__file__).parents[1]


def faults(tmp_path: Path, *command: str) -> list[ResultRow]:
    path = tmp_path / "figures.json"
    done = subprocess.run(
        [sys.executable, "-m", *command, "--json", str(path)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert path.exists(), done.stderr
    return [row for row in result.decode(path.read_text()).rows if row.fault]


@pytest.mark.parametrize("campaign", ["race", "kills", "locks", "shared", "exec"])
def test_campaign(tmp_path: Path, campaign: str) -> None:
    assert faults(tmp_path, "benchmarks.limiter_races", campaign) == []


def test_no_class_passes_the_limit_or_is_refused_below_it(tmp_path: Path) -> None:
    assert faults(tmp_path, "benchmarks.limiter_memory", "leaks") == []


def test_no_pair_of_classes_passes_the_limit_or_is_refused_below_it(tmp_path: Path) -> None:
    assert faults(tmp_path, "benchmarks.limiter_memory", "pairs") == []


def test_preloaded_libraries_and_copies_of_the_driver_pass_no_limit() -> None:
    """`benchmarks.limiter_preloads build` has compiled what this runs."""
    command = [sys.executable, "-m", "benchmarks.limiter_preloads"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
