"""`benchmarks.gpu_session` always ends, and reports the outcome of each step."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import limiter
from benchmarks.gpu_session import StepOutcome, StepSession, choose
from benchmarks.gpu_steps import LISTS, SessionStep
from benchmarks.programs import build
from benchmarks.record import result
from simgpu import state_directory
from simgpu.world import World

pytestmark = pytest.mark.slow

ROOT = Path(limiter.__file__).parents[1]
SHORT = 60.0  # limit of a step that ends by itself: far more than it needs on a loaded machine

HANGS = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = os.fork()
if child:
    print(os.getpid(), child, sep="\\n", flush=True)
time.sleep(600)
"""


def step(name: str, code: str, limit_s: float = SHORT, *arguments: str, has_figures: bool = False) -> SessionStep:
    return SessionStep(name, limit_s, (sys.executable, "-c", code, *arguments), has_figures=has_figures)


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., list[StepOutcome]]:
    def started(*steps: SessionStep, seconds: float = 240) -> list[StepOutcome]:
        with StepSession(tmp_path / "out", seconds, lambda: None) as session:
            return session.run(steps)

    return started


def test_a_step_that_hangs_is_killed_with_its_children_and_the_next_runs(
    run: Callable[..., list[StepOutcome]], tmp_path: Path
) -> None:
    hung, after = run(step("hangs", HANGS, 10), step("says", "print('all is well')"))
    assert (hung.verdict, after.verdict, after.last) == ("KILLED at its limit", "good", "all is well")
    said = (tmp_path / "out" / "session.txt").read_text()
    pids = [int(line) for line in said.splitlines() if line.isdigit()]
    assert len(pids) == 2
    begun = time.monotonic()
    while any(is_alive(pid) for pid in pids) and time.monotonic() < begun + SHORT:
        time.sleep(0.01)
    assert not any(is_alive(pid) for pid in pids)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_fault_a_crash_and_a_missing_program_have_different_verdicts(run: Callable[..., list[StepOutcome]]) -> None:
    steps = [step("wrong", "raise SystemExit(1)"), step("dies", "import os; os.abort()")]
    found = run(*steps, SessionStep("missing", SHORT, ("no such program",)))
    assert [result.verdict for result in found] == ["WRONG", "ENDED with -6", "cannot be run"]


def test_steps_without_time_left_are_not_started(run: Callable[..., list[StepOutcome]], tmp_path: Path) -> None:
    found = run(step("long", "import time; time.sleep(60)", 1), step("late", "print(1)"), seconds=5)
    assert [result.verdict for result in found] == ["KILLED at its limit", "not begun"]
    assert "late             not begun" in (tmp_path / "out" / "session.txt").read_text()


def test_each_step_has_its_own_figures_or_none(run: Callable[..., list[StepOutcome]], tmp_path: Path) -> None:
    writes = "import pathlib, sys; pathlib.Path(sys.argv[2]).write_text('{\"share\": 30}')"
    found = run(step("writes", writes, has_figures=True), step("writes none", "", has_figures=True))
    assert [result.figures for result in found] == [{"share": 30}, None]
    kept = json.loads((tmp_path / "out" / "session.json").read_text())["steps"]
    assert [outcome["figures"] for outcome in kept] == [{"share": 30}, None]


def test_lists_have_unique_names_and_run_steps_on_demand_only_when_named() -> None:
    for steps in LISTS.values():
        by_name = {step.name: step for step in steps}
        assert len(by_name) == len(steps)
        assert not any(step.on_demand for step in choose(by_name, [], quick=False))
    memory = {step.name: step for step in LISTS["memory"]}
    assert [step.name for step in choose(memory, ["spill"], quick=False)] == ["spill"]


def test_steps_of_the_memory_list_run_on_the_simulated_driver(make_world: Callable[..., World], tmp_path: Path) -> None:
    for name in ("worker", "race", "kills", "cost"):
        build.program(name)
    world = make_world(tuple(replace(card, context_mib=300) for card in state_directory.make_cards(2)))
    names = ("leaks", "kills", "costs", "exporters")
    command = [
        sys.executable,
        "-m",
        "benchmarks.gpu_session",
        "memory",
        *names,
        "--quick",
        "--out",
        str(tmp_path / "o"),
    ]
    env = {**world.environment(), "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)}
    subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, check=False)
    results = json.loads((tmp_path / "o" / "session.json").read_text())["steps"]
    assert [outcome["name"] for outcome in results] == list(names)
    assert all(result.of_document(outcome["figures"]).rows for outcome in results)
    assert {outcome["verdict"] for outcome in results} <= {"good", "WRONG"}  # a goal for times may be missed here
