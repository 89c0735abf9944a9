"""The campaigns of `benchmarks.limiter_races`, with small numbers, on the simulated GPU."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import limiter
from benchmarks.programs import build
from benchmarks.record import result
from benchmarks.report.tables.limiter import LEAKS
from simgpu import state_directory
from simgpu.world import World

pytestmark = pytest.mark.slow

MIB = 1 << 20
ROOT = Path(limiter.__file__).parents[1]
TABLE = [row_id for line in LEAKS.lines for row_id in line.ids]
SAME_WHEN_QUICK = ("locks", "shared", "exec")  # --quick has other numbers in the row ids of race and kills
PROGRAMS = ("worker", "race", "kills", "lock_holder")


@pytest.fixture(scope="module", autouse=True)
def programs() -> None:
    for name in PROGRAMS:
        build.program(name)


def outcomes(world: World, tmp_path: Path, campaign: str, *more: str) -> list[dict[str, Any]]:
    """Run a campaign in a new process on the simulated GPU; return the details of its rows."""
    path = tmp_path / "outcomes.json"
    command = [sys.executable, "-m", "benchmarks.limiter_races", campaign, "--quick", *more, "--json", str(path)]
    done = subprocess.run(command, env=world.environment(), cwd=ROOT, capture_output=True, text=True, check=False)
    assert path.exists(), done.stderr
    rows = result.decode(path.read_text()).rows
    assert all(row.id.startswith("space.") == bool(more) for row in rows)
    if campaign in SAME_WHEN_QUICK:
        assert {row.id for row in rows} == {row_id for row_id in TABLE if row_id.startswith(f"races.{campaign}.")}
    return [dict(row.details) for row in rows]


def test_races_for_the_last_bytes_fill_the_room_and_never_pass_it(world: World, tmp_path: Path) -> None:
    for found in outcomes(world, tmp_path, "race"):
        assert found["faults"] == []
        assert found["figures"]["least"] == found["figures"]["room"]
        assert found["figures"]["refusals"] > 0


@pytest.mark.parametrize("campaign", ["race", "kills"])
def test_members_of_a_group_are_held_to_the_limit_as_any_processes(world: World, tmp_path: Path, campaign: str) -> None:
    for found in outcomes(world, tmp_path, campaign, "--space"):
        assert without_waits(found["faults"]) == []


def test_a_process_that_is_no_client_of_its_groups_server_is_a_fault(world: World, tmp_path: Path) -> None:
    """Without a daemon a program runs outside of MPS without a word: the figures would be of something else."""
    program = (
        "from pathlib import Path\nfrom benchmarks.memory import races\n"
        "from benchmarks.memory.nvml_watcher import Watcher\n"
        "with Watcher() as watcher:\n    print(races.race(watcher, 2, 2, 9, 1, Path('/nowhere')).faults)\n"
    )
    environment = world.environment() | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout == '["2 processes are no clients of the group\'s server"]\n', done


def without_waits(faults: list[str]) -> list[str]:
    """Return the faults without those of slow calls, because other programs of the machine delay calls too."""
    return [fault for fault in faults if not fault.startswith("waited")]


def test_after_kills_living_processes_are_charged_what_they_hold(world: World, tmp_path: Path) -> None:
    for found in outcomes(world, tmp_path, "kills"):
        assert without_waits(found["faults"]) == []
        assert found["figures"]["taken"] > 0
        assert found["figures"].get("charged", found["figures"]["held"]) == found["figures"]["held"]


def test_a_lock_holder_that_dies_or_stops_at_any_instruction_delays_no_other_process(
    world: World, tmp_path: Path
) -> None:
    """A survivor waits at most once for the lock: 50 ms. A wait in each function that takes the lock takes longer."""
    for found in outcomes(world, tmp_path, "locks"):
        assert without_waits(found["faults"]) == []
        assert found["figures"]["instants"] > 1
        assert found["figures"]["longest_ns"] < 200e6


def test_the_remaining_holder_of_shared_memory_is_charged(make_world: Callable[..., World], tmp_path: Path) -> None:
    cards = tuple(replace(card, context_mib=300) for card in state_directory.make_cards(1))
    for found in outcomes(make_world(cards), tmp_path, "shared"):
        assert found["faults"] == []
        living = 2 if "frees" in found["name"] else 1
        assert found["figures"]["charged"] == found["figures"]["NVML"] - living * 300 * MIB


def test_exec_of_a_program_without_cuda_frees_the_memory(world: World, tmp_path: Path) -> None:
    assert [found["faults"] for found in outcomes(world, tmp_path, "exec")] == [[]]
