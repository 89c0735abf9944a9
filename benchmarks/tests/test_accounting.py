"""`benchmarks.accounting`: its sums, and one case of it on the simulated GPU."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import limiter
from benchmarks.accounting import union_s
from simgpu.world import World

ROOT = Path(limiter.__file__).parents[1]


def test_time_in_several_spans_counts_once() -> None:
    assert union_s([]) == 0
    assert union_s([(5, 10), (0, 6), (6, 8), (20, 30), (25, 26)]) == pytest.approx(20e-9)


@pytest.mark.slow
def test_two_containers_add_up_on_the_simulated_gpu(world: World, tmp_path: Path) -> None:
    path = tmp_path / "figures.json"
    command = [sys.executable, "-m", "benchmarks.accounting", "--quick", "--only", "fixed 30 and fixed 60"]
    subprocess.run(
        [*command, "--json", str(path)], env=world.environment() | {"PYTHONPATH": str(ROOT)}, cwd=ROOT, check=False
    )
    rows = {row["id"].partition(".")[2]: row for row in json.loads(path.read_text())["rows"]}
    assert rows.keys() == {"30", "60", "others", "sum", "card-by-nvml"}
    for name in ("30", "60"):  # the simulated NVML may give the last sample of a process that has ended to no process
        assert rows[name]["value"] == pytest.approx(rows[name]["native"], rel=0.1)
