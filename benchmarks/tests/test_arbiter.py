"""`benchmarks.arbiter` writes a row for each figure that its table shows."""

import subprocess
import sys
from pathlib import Path

import pytest

import limiter
from benchmarks.record import result
from benchmarks.report.tables.limiter import ARBITER

pytestmark = pytest.mark.slow  # measures for some seconds

ROOT = Path(limiter.__file__).parents[1]


def test_every_row_of_the_table_is_measured(shim: Path, tmp_path: Path) -> None:
    assert shim.is_file()
    path = tmp_path / "figures.json"
    command = [sys.executable, "-m", "benchmarks.arbiter", "--seconds", "0.3", "--json", str(path)]
    subprocess.run(command, cwd=ROOT, check=True)
    found = {row.id: row.value for row in result.decode(path.read_text()).rows}
    assert set(found) == {row_id for line in ARBITER.lines for row_id in line.ids}
    assert all(found[f"arbiter.{clients}-clients.turns_per_s"] for clients in (2, 8, 300))
