"""Where the time of programs on a card went: the words, and the counts of an arbiter with a group and a fixed share."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import limiter
from benchmarks.applications import turns_explained
from benchmarks.applications.turns_explained import CountedTurns
from simgpu.world import World

ROOT = Path(limiter.__file__).parents[1]
LINE = (
    "vgpu[7]: turns of tenant {}, {}, card GPU-1: held_ns={} turns=10 asked_back=4 drain_ns=2000000 "
    "longest_drain_ns=900000 dones=12 busy_dones=3 rest_ns=600000\n"
)
PROGRAM = """
import json, subprocess, sys, time
from benchmarks.applications.turns_explained import ExplainedTurns, LOG_LEVEL
from benchmarks.compute.node import BenchmarkNode
from benchmarks.container import GROUP
from benchmarks.space import daemon
from benchmarks.space.client_process import Client
from vgpu.domain.formats.limits import SpaceMembership
with daemon.pipe_of_group(is_wanted=True) as pipe, BenchmarkNode(LOG_LEVEL) as node:
    membership = SpaceMembership(GROUP.fingerprint, None)
    envs = {f"member {n}": node.member(10, membership, pipe) for n in range(3)} | {"fixed": node.container(30, "fixed")}
    envs["idle time"] = node.container(None, "best-effort")
    clients = [Client(env) for env in envs.values()]
    assert [client("start") for client in clients] == [0] * 5
    explained = ExplainedTurns(node, envs)
    explained.begin()
    for client in clients:
        client.tell("throughput 500 4")
    did = [client.answer() for client in clients]
    print(json.dumps({"did": did, "lines": list(explained.lines(4.0))}))
    for client in clients:
        client.end()
"""


def test_the_newest_line_of_each_tenant_counts() -> None:
    found = turns_explained.turns_in(LINE.format(0, "group 30", 5) + LINE.format(0, "group 30", 9) + "other\n")
    assert found["group 30 (tenant 0)"]["held_ns"] == 9
    assert found["group 30 (tenant 0)"]["dones"] == 12


def test_the_words_say_what_was_counted_between_two_moments() -> None:
    before = CountedTurns(turns_explained.turns_in(LINE.format(0, "fixed 30", 10**9).replace("=10 ", "=5 ")), {})
    after = CountedTurns(turns_explained.turns_in(LINE.format(0, "fixed 30", 3 * 10**9)), {})
    (line,) = turns_explained.explained(before, after, 10.0)
    assert line.startswith("tenant fixed 30 (tenant 0): held 20.00 %; 0.5 turns a second of 400.000 ms, 0.0 asked back")


@pytest.mark.slow
def test_a_group_and_a_fixed_share_on_a_simulated_card_are_explained(world: World, tmp_path: Path) -> None:
    environment = world.environment() | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done
    lines = json.loads(done.stdout)["lines"]
    tenants = {line.split(" (")[0]: line for line in lines if line.startswith("tenant")}
    assert tenants.keys() == {"tenant group 30", "tenant fixed 30", "tenant best-effort 0"}
    assert sum(line.startswith("program member") for line in lines) == 3
    assert " 0 of " not in tenants["tenant group 30"]
    assert ", 0.0 asked back" not in tenants["tenant group 30"]
