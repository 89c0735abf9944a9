"""On a real GPU: every campaign of `benchmarks.limiter_races` and every row of the leak table (`make gpu`)."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import limiter

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]

ROOT = Path(limiter.__file__).parents[1]


def run(tmp_path: Path, *command: str) -> dict[str, Any]:
    path = tmp_path / "figures.json"
    done = subprocess.run(
        [sys.executable, "-m", *command, "--json", str(path)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert path.exists(), done.stderr
    figures: dict[str, Any] = json.loads(path.read_text())
    return figures


@pytest.mark.parametrize("campaign", ["race", "kills", "locks", "shared", "exec"])
def test_campaign(tmp_path: Path, campaign: str) -> None:
    found = run(tmp_path, "benchmarks.limiter_races", campaign)["outcomes"]
    assert [(each["name"], each["faults"]) for each in found if each["faults"]] == []


def test_no_class_passes_the_limit_or_is_refused_below_it(tmp_path: Path) -> None:
    rows = run(tmp_path, "benchmarks.limiter_memory", "leaks")["leaks"]
    assert [(row["name"], row["faults"]) for row in rows if row["faults"]] == []


def test_no_pair_of_classes_passes_the_limit_or_is_refused_below_it(tmp_path: Path) -> None:
    pairs = run(tmp_path, "benchmarks.limiter_memory", "pairs")["pairs"]
    assert [(a, b, fault) for a, seconds in pairs.items() for b, fault in seconds.items() if fault] == []
