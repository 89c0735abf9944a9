"""The leak table of `benchmarks.limiter_memory` on the simulated GPU: every class, every ordered pair."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import limiter
from benchmarks.programs import build
from benchmarks.record import result
from benchmarks.record.result import ResultRow
from simgpu import state_directory
from simgpu.world import World

pytestmark = pytest.mark.heavy

ROOT = Path(limiter.__file__).parents[1]


def figures(world: World, tmp_path: Path, *part: str) -> dict[str, ResultRow]:
    """Run a part in a new process on the simulated GPU; return its rows by id."""
    build.program("worker")
    path = tmp_path / "figures.json"
    command = [sys.executable, "-m", "benchmarks.limiter_memory", *part, "--json", str(path)]
    done = subprocess.run(command, env=world.environment(), cwd=ROOT, capture_output=True, text=True, check=False)
    assert path.exists(), done.stdout + done.stderr
    return {row.id: row for row in result.decode(path.read_text()).rows}


@pytest.fixture(params=[0, 500], ids=["contexts that cost nothing", "contexts of 500 MiB"])
def any_world(make_world: Callable[..., World], request: pytest.FixtureRequest) -> World:
    return make_world(tuple(replace(card, context_mib=request.param) for card in state_directory.make_cards(1)))


def is_undone(fault: str, *names: str) -> bool:
    """Whether NVML saw memory of a refused graph: the limiter knows its size only after the launch, and frees it."""
    return fault.startswith("NVML over") and any(name.startswith("graph") for name in names)


def test_no_class_passes_the_limit_or_is_refused_below_it(any_world: World, tmp_path: Path) -> None:
    rows = [row.details for row_id, row in figures(any_world, tmp_path, "leaks").items() if row_id != "leaks"]
    found = [(row["name"], fault) for row in rows for fault in row["faults"]]
    assert len(rows) >= 20
    assert [(name, fault) for name, fault in found if not is_undone(fault, name)] == []


def test_no_pair_of_classes_passes_the_limit_or_is_refused_below_it(any_world: World, tmp_path: Path) -> None:
    pairs = figures(any_world, tmp_path, "pairs")["pairs"].details
    found = [(a, b, fault) for a, b, fault in pairs["faulty"] if not is_undone(fault, a, b)]
    assert pairs["of"] >= 16 * 16
    assert found == []


@pytest.mark.slow
def test_a_member_of_a_group_is_limited_as_any_container_and_is_refused_unified_memory(
    any_world: World, tmp_path: Path
) -> None:
    rows = figures(any_world, tmp_path, "leaks", "--space")
    assert {row_id.partition(".")[0] for row_id in rows} == {"space"}
    found = {row.details["name"]: row.details for row_id, row in rows.items() if row_id != "space.leaks"}
    faults = [(name, fault) for name, row in found.items() for fault in row["faults"] if not is_undone(fault, name)]
    assert (len(found) >= 20, faults) == (True, [])
    assert found["managed"]["refusal"] == "cuMemAllocManaged 801"
