"""`benchmarks.space.facts` can ask its questions; the simulated driver says nothing about a real one."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import limiter
from simgpu.world import World

pytestmark = pytest.mark.slow

ROOT = Path(limiter.__file__).parents[1]


def run(world: World, *names: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks.space.facts", *names]
    return subprocess.run(command, env=world.environment(), cwd=ROOT, capture_output=True, text=True, check=False)


def test_each_question_has_a_line(world: World) -> None:
    names = (
        "commands",
        "environment",
        "waits",
        "killed_daemon",
        "killed_all",
        "fault_logs",
        "most_clients",
        "handover",
    )
    done = run(world, *names)
    assert done.returncode == 0, done
    found = dict[str, dict[str, object]]()
    for line in done.stdout.splitlines():
        found |= json.loads(line)
    assert tuple(found) == names
    assert found["commands"]["get_server_list"] == [str(found["commands"]["server"])]
    assert found["environment"]["outside"] == {"multiprocessors": 132, "MPS_ENABLED": 0}
    assert found["most_clients"]["served"] == 48
    assert found["fault_logs"]["results"] == {"faulty": [0, 700], "neighbour": 700}


def test_a_question_that_cannot_be_answered_is_said_to_be_and_the_others_are_asked(world: World) -> None:
    (world.state / "fail").write_text("nvmlInit_v2 999 1\n")
    done = run(world, "commands", "waits")
    assert done.returncode == 1
    first, second = (json.loads(line) for line in done.stdout.splitlines())
    assert "error" in first["commands"]
    assert second["waits"] == {"outside": 0, "client": 0}


def test_a_question_that_does_not_exist_is_named(world: World) -> None:
    done = run(world, "thunder")
    assert (done.returncode, "no such question: thunder" in done.stderr) == (1, True)
