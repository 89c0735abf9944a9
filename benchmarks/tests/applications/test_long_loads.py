"""Long kernels beside short ones: the figures, and a kernel that never ends on the simulated GPU."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.applications import long_loads
from benchmarks.compute import load
from benchmarks.container import native_env
from benchmarks.record.result import slug
from simgpu.world import World


def test_each_figure_of_each_scenario_has_an_id_of_its_own() -> None:
    scenarios = [*long_loads.long_kernels(), *long_loads.endless_kernels()]
    ids = [slug(one.part, one.name, figure) for one in scenarios for figure in one.goals]
    assert len(ids) == len(set(ids))


def test_programs_that_nvml_does_not_know_count_as_the_endless_one() -> None:
    assert long_loads.owners_of([7, 8, 9], [8, 7]) == {7: 1, 8: 0}
    assert long_loads.owners_of([70, 80], [8, 7]) == {70: 0, 80: 0}


def test_the_others_get_what_is_left_of_their_time_alone() -> None:
    ends = [number * 2 * long_loads.SHORT_US for number in range(11)]
    figures = long_loads.others_figures({"times_us": ends}, 80.0)
    assert figures["the others, of alone %"] == pytest.approx(100 * 50 / 80)
    assert figures["the others' kernels p50 ms"] == 1


def test_a_program_whose_kernels_do_not_end_has_nothing_of_the_card() -> None:
    assert long_loads.share({"times_us": [5]}, 1000) == 0


@pytest.mark.slow
def test_a_program_that_runs_for_longer_than_answers_take_is_not_killed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in world.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(load, "ANSWER_TIMEOUT_S", 1.0)
    (answer,) = load.run_together([(load.TimedLoad("steady", long_loads.SHORT_US), native_env())], 3.0)
    assert long_loads.share(answer, long_loads.SHORT_US) > 50


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_kernel_that_never_ends_is_reported(world: World, tmp_path: Path) -> None:
    """In a process of its own, because NVML's library is found by the environment with which the process began."""
    command = [sys.executable, "-m", "benchmarks.limiter_programs", "endless", "--only", "never ends"]
    rows = tmp_path / "rows.json"
    subprocess.run([*command, "--json", str(rows)], env=world.environment(), check=False, capture_output=True)
    values = {row["id"]: row["value"] for row in json.loads(rows.read_text())["rows"]}
    (reported,) = [value for name, value in values.items() if name.endswith("reported-after-s")]
    assert long_loads.ENDLESS_SECONDS > reported > 5
