"""The leak table of `benchmarks.limiter_memory` on the simulated driver: every class, every ordered pair."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import limiter
from benchmarks.limiter import build
from benchmarks.limiter.native import WHOLE_CONTEXTS
from tests.driver import simgpu
from tests.driver.conftest import World

ROOT = Path(limiter.__file__).parents[1]

# What the simulated driver does unlike the real one, by which the limiter goes: its NVML counts what a process has
# imported of its own, and a green context costs nothing. Where no context does, it does not list the process.
UNLIKE = {"vmm imported", "external memory", "in a green context"}


def figures(world: World, tmp_path: Path, part: str) -> dict[str, Any]:
    """What a part found; it runs in a process of its own, for this one cannot load the simulated driver."""
    build.program("worker")
    path = tmp_path / "figures.json"
    command = [sys.executable, "-m", "benchmarks.limiter_memory", part, "--json", str(path)]
    done = subprocess.run(command, env=world.environment(), cwd=ROOT, capture_output=True, text=True, check=False)
    assert path.exists(), done.stdout + done.stderr
    found: dict[str, Any] = json.loads(path.read_text())
    return found


@pytest.fixture(params=[0, 500], ids=["contexts that cost nothing", "contexts of 500 MiB"])
def any_world(make_world: Callable[..., World], request: pytest.FixtureRequest) -> World:
    return make_world(tuple(replace(card, context_mib=request.param) for card in simgpu.make_cards(1)))


def is_known(world: World, fault: str, *names: str) -> bool:
    """A graph's memory may be tried before it is judged, so that the card has it for a moment.

    What a pool keeps is not taken from it for a graph.
    """
    unlike = UNLIKE if world.cards[0].context_mib else {*UNLIKE, *WHOLE_CONTEXTS}
    of_graphs = any("graph" in name for name in names) and ("NVML over" in fault or " cuGraph" in fault)
    return not unlike.isdisjoint(names) or of_graphs


def test_no_class_passes_the_limit_or_is_refused_below_it(any_world: World, tmp_path: Path) -> None:
    rows = figures(any_world, tmp_path, "leaks")["leaks"]
    found = [(row["name"], fault) for row in rows for fault in row["faults"]]
    assert len(rows) >= 20
    assert [(name, fault) for name, fault in found if not is_known(any_world, fault, name)] == []


def test_no_pair_of_classes_passes_the_limit_or_is_refused_below_it(any_world: World, tmp_path: Path) -> None:
    pairs = figures(any_world, tmp_path, "pairs")["pairs"]
    found = [(a, b, fault) for a, seconds in pairs.items() for b, fault in seconds.items() if fault]
    assert len(pairs) >= 16
    assert [(a, b, fault) for a, b, fault in found if not is_known(any_world, fault, a, b)] == []
