"""`benchmarks.compute.hazards` and `queue_hazards` run on the simulated GPU. Times are goals there, and not tested."""

import subprocess
import sys
from pathlib import Path

import pytest

import limiter
from benchmarks.programs import build
from simgpu.world import World

pytestmark = pytest.mark.slow

ROOT = Path(limiter.__file__).parents[1]


def run(world: World, module: str, *names: str) -> subprocess.CompletedProcess[str]:
    for program in ("feed", "timed"):
        build.program(program)
    command = [sys.executable, "-m", f"benchmarks.compute.{module}", *names]
    return subprocess.run(command, env=world.environment(), cwd=ROOT, capture_output=True, text=True, check=False)


def test_hazards_of_a_fixed_share(world: World) -> None:
    done = run(world, "hazards", "streams_end", "captures")
    assert (done.returncode, done.stdout.count("no fault")) == (0, 2)


def test_hazards_of_queued_launches(world: World) -> None:
    done = run(world, "queue_hazards", "queued_exits", "arbiter_killed")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in done.stdout.splitlines() if "| beside" in line]
    faults = {(hazard, neighbour, figure): fault for hazard, neighbour, figure, *_, fault, _, _ in rows}
    counts = {key: fault for key, fault in faults.items() if key[2] in {"queued launches", "wrong results"}}
    assert len(counts) == 2 + 4  # a program that ends prints no results, so its hazard has one of the two figures
    assert set(counts.values()) == {"none"}
    assert "the longest wait of anybody outside: " in done.stdout


def test_a_hazard_that_does_not_exist_is_named(world: World) -> None:
    done = run(world, "queue_hazards", "thunder")
    assert (done.returncode, "no such hazard: thunder" in done.stderr) == (2, True)
