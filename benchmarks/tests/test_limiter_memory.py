"""The leak table of `benchmarks.limiter_memory` on the simulated GPU: every class, every ordered pair."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import limiter
from benchmarks.programs import build
from simgpu import state_directory
from simgpu.world import World

ROOT = Path(limiter.__file__).parents[1]


def figures(world: World, tmp_path: Path, part: str) -> dict[str, Any]:
    """The figures of a part, which runs in a new process with the simulated driver."""
    build.program("worker")
    path = tmp_path / "figures.json"
    command = [sys.executable, "-m", "benchmarks.limiter_memory", part, "--json", str(path)]
    done = subprocess.run(command, env=world.environment(), cwd=ROOT, capture_output=True, text=True, check=False)
    assert path.exists(), done.stdout + done.stderr
    found: dict[str, Any] = json.loads(path.read_text())
    return found


@pytest.fixture(params=[0, 500], ids=["contexts that cost nothing", "contexts of 500 MiB"])
def any_world(make_world: Callable[..., World], request: pytest.FixtureRequest) -> World:
    return make_world(tuple(replace(card, context_mib=request.param) for card in state_directory.make_cards(1)))


def is_undone(fault: str, *names: str) -> bool:
    """Whether NVML saw a graph's memory that the limiter frees again: its size is known only after the launch."""
    return fault.startswith("NVML over") and any(name.startswith("graph") for name in names)


def test_no_class_passes_the_limit_or_is_refused_below_it(any_world: World, tmp_path: Path) -> None:
    rows = figures(any_world, tmp_path, "leaks")["leaks"]
    found = [(row["name"], fault) for row in rows for fault in row["faults"]]
    assert len(rows) >= 20
    assert [(name, fault) for name, fault in found if not is_undone(fault, name)] == []


def test_no_pair_of_classes_passes_the_limit_or_is_refused_below_it(any_world: World, tmp_path: Path) -> None:
    pairs = figures(any_world, tmp_path, "pairs")["pairs"]
    found = [(a, b, fault) for a, seconds in pairs.items() for b, fault in seconds.items() if fault]
    assert len(pairs) >= 16
    assert [(a, b, fault) for a, b, fault in found if not is_undone(fault, a, b)] == []
