"""`benchmarks.limiter_compute`: goals, table and plot, and parts of it on the simulated GPU."""

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

import limiter
from benchmarks.compute import latency, scenario
from benchmarks.compute.scenario import Failure, Goal, Scenario, ScenarioFigure, SkippedError, at_least, at_most, near
from benchmarks.programs import build
from benchmarks.record import result
from benchmarks.report import plot
from simgpu.world import World

pytestmark = pytest.mark.slow

ROOT = Path(limiter.__file__).parents[1]
SHORT_US = 1000


def row(goal: Goal, *rounds: float, part: str = "tenants") -> ScenarioFigure:
    return ScenarioFigure(part, "a load", "share %", goal, None, rounds, 1.0, 0.0)


@pytest.mark.parametrize(
    ("goal", "rounds", "median", "worst", "fault"),
    [
        (near(30, 1.5), (30.5, 28, 31), 30.5, 28, ""),
        (near(30, 1.5), (28, 32, 27), 28, 27, "0.50 off"),
        (at_most(20), (5, 30, 10), 10, 30, ""),
        (at_least(98), (99, 97, 96), 97, 96, "1.00 off"),
        (scenario.SHOWN, (1, 3, 2), 2, 3, ""),
    ],
)
def test_the_median_is_compared_with_the_goal_and_the_worst_round_is_shown(
    goal: Goal, rounds: tuple[float, ...], median: float, worst: float, fault: str
) -> None:
    found = row(goal, *rounds)
    assert (found.median, found.worst, found.fault) == (median, worst, fault)
    assert found.line().count("|") == scenario.HEAD.splitlines()[0].count("|")


def test_a_skipped_or_failed_scenario_does_not_end_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    def skips(_: object) -> dict[str, float]:
        raise SkippedError("needs two cards")

    def fails(_: object) -> dict[str, float]:
        raise RuntimeError("cuInit: 100")

    scenarios = [Scenario("same", name, {}, measure) for name, measure in (("one", skips), ("other", fails))]
    assert list(scenario.table(scenarios, 1)) == [Failure("same", "other", "cuInit: 100")]
    assert "skipped: needs two cards" in capsys.readouterr().out


def test_the_plot_has_a_point_at_the_shares_asked_and_got() -> None:
    text = plot.picture([row(near(50, 1), 40, 50, 60), row(at_most(1), 5)], "a card & more")
    drawn = ET.fromstring(text)
    circles = [element for element in drawn.iter() if element.tag.endswith("circle") and len(element)]
    middle = str(plot.EDGE + plot.SIDE / 2)
    assert [(circle.get("cx"), circle.get("cy")) for circle in circles] == [(middle, middle)]


STAYS = [*range(0, 100_000, 2 * SHORT_US), *range(103_000, 160_000, SHORT_US), *range(160_000, 300_000, 2 * SHORT_US)]


def test_latencies_follow_from_the_times_when_kernels_ended() -> None:
    stays = {"times_us": STAYS}
    returns = {"times_us": [*range(1000, 100_001, 2000), 168_000, *range(169_000, 400_000, 2000)], "back_us": 160_000}
    assert latency.taken_ms(stays, returns, SHORT_US) == pytest.approx(4, abs=1)
    assert latency.first_ms(returns, SHORT_US) == pytest.approx(7)
    assert latency.behind_ms(returns, SHORT_US) == pytest.approx(4)


def test_kernels_that_take_a_little_longer_than_estimated_do_not_hide_that_the_card_was_taken() -> None:
    stays = {"times_us": range(0, 800_000, 5020)}
    assert latency.taken_ms(stays, {"times_us": [100_000], "back_us": 700_000}, 5000) < 5.1


def figures(world: World, tmp_path: Path, *arguments: str) -> dict[str, result.ResultRow]:
    for name in ("feed", "timed"):
        build.program(name)
    path = tmp_path / "figures.json"
    command = [sys.executable, "-m", "benchmarks.limiter_compute", *arguments, "--quick", "--json", str(path)]
    env = world.environment() | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, check=False)
    assert path.exists(), done.stdout + done.stderr
    return {row.id: row for row in result.decode(path.read_text()).rows}


def test_two_containers_get_about_what_they_ask_and_natively_the_same(world: World, tmp_path: Path) -> None:
    """The bounds are wide, because other programs use the machine."""
    found = figures(world, tmp_path, "tenants", "--only", "30 and 60")
    small, large = (found[f"tenants.30-and-60.{place}-fixed-{cores}"] for place, cores in ((1, 30), (2, 60)))
    assert abs((small.native or 0) - (large.native or 0)) < 5
    assert 20 < small.rounds[0] < 40 < large.rounds[0] < 70


def test_a_flood_of_messages_leaves_shares_alone(world: World, tmp_path: Path) -> None:
    found = figures(world, tmp_path, "arbiter", "--only", "300 clients")
    for cores in (30, 50):
        assert cores - 12 < found[f"arbiter.300-clients-ask-all-the-time.fixed-{cores}"].rounds[0] < cores + 8


def test_a_result_of_a_simulated_card_says_so(world: World, tmp_path: Path) -> None:
    path = tmp_path / "figures.json"
    command = [sys.executable, "-m", "benchmarks.limiter_compute", "same", "--json", str(path)]
    done = subprocess.run(command, env=world.environment() | {"PATH": os.environ["PATH"]}, cwd=ROOT, check=False)
    assert done.returncode == 0
    found = result.decode(path.read_text())
    assert found.simulated
    assert found.machine.gpu
    assert not found.is_publishable
