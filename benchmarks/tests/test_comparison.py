"""Comparisons of native and limited: the order of measurement and clock drift do not change a ratio."""

import statistics
import subprocess
import sys
from pathlib import Path

import pytest

import limiter
from benchmarks import comparison
from benchmarks.memory import costs
from benchmarks.programs import build
from benchmarks.record import result
from benchmarks.record.result import ResultRow
from benchmarks.report.tables.limiter import COSTS
from simgpu.world import World

ROOT = Path(limiter.__file__).parents[1]


class Machine:
    """Returns nanoseconds; each measurement is slower than the one before, and the first of a pair is slower still."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, side: int) -> float:
        is_first, self.asked = self.asked % 2 == 0, self.asked + 1
        return (1000 + self.asked + 300 * is_first) * (1.5 if side else 1)


def test_the_order_and_a_drift_do_not_change_the_ratio() -> None:
    pairs = comparison.interleave(Machine(), 40)
    cost = comparison.cost_of("a call", pairs)
    assert cost.ratio == pytest.approx(1.5, rel=1e-3)
    assert cost.middle == pytest.approx((1.5, 1.5), rel=1e-3)


def ratios(world: World, tmp_path: Path, part: str) -> dict[str, ResultRow]:
    """Run a part of limiter_memory in a new process on the simulated GPU; return its rows by id."""
    build.program("cost")
    path = tmp_path / "figures.json"
    command = [sys.executable, "-m", "benchmarks.limiter_memory", part, "--quick", "--json", str(path)]
    done = subprocess.run(command, env=world.environment(), cwd=ROOT, capture_output=True, text=True, check=False)
    assert path.exists(), done.stdout + done.stderr
    return {row.id: row for row in result.decode(path.read_text()).rows}


@pytest.mark.heavy
def test_each_call_has_a_cost_and_no_program_fails(world: World, tmp_path: Path) -> None:
    found = ratios(world, tmp_path, "costs")
    assert set(found) == {row_id for line in COSTS.lines for row_id in line.ids if row_id.startswith("costs.")}
    assert all(row.details["failed"] == [0, 0] for row in found.values())


@pytest.mark.slow
def test_native_beside_itself_costs_the_same(world: World, tmp_path: Path) -> None:
    """The median over all calls is bounded, because other programs of the machine disturb single calls."""
    found = ratios(world, tmp_path, "twins")
    assert set(found) == {result.slug("twins", name) for name in costs.CALLS}
    assert 0.5 < statistics.median(row.value or 0 for row in found.values()) < 2
