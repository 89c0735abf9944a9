"""The packing simulation: its arrays agree with the product's functions, and it runs on files."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.placement import baselines, simulation, traces
from benchmarks.placement.baselines import Fgd
from benchmarks.placement.fleet import FleetArrays
from benchmarks.placement.learned import Fragmentation
from benchmarks.placement.traces import MIXES, Mix, Trace, TraceNode
from benchmarks.placement.verbs import VerbsFleet
from vgpu.domain.identifiers import NodeName
from vgpu.placement import rank, weights
from vgpu.placement.costs import fgd, fragmentation
from vgpu.placement.question import Question
from vgpu.placement.room import CARD, CardRoom, NodeRoom, PodAsk

MIX = Mix(fractional=0.6, several=0.3, choosy=0.2)


def on_node(fleet: FleetArrays, node: int) -> NodeRoom:
    columns = zip(fleet.free[node], fleet.total[node], fleet.cores[node], fleet.model[node], strict=True)
    return NodeRoom(int(fleet.cpu[node]), int(fleet.memory[node]), [CardRoom(*map(int, column)) for column in columns])


@pytest.mark.heavy
def test_the_arrays_choose_the_node_that_the_products_functions_choose() -> None:
    trace = traces.generate(MIX, cards=40, seed=3)
    fleet = FleetArrays(trace.machines)
    policy = Fragmentation(fleet)
    rng = np.random.default_rng(1)
    for n in rng.choice(len(trace.asks), size=150, p=trace.weights):
        ask = trace.asks[n]
        policy.see(ask)
        chosen = policy.choose(ask)
        fitting = np.flatnonzero(fleet.fits(ask)).tolist()
        question = Question(ask, policy.demand)
        costs = {NodeName(trace.machines[k].name): fragmentation.cost(on_node(fleet, k), question) for k in fitting}
        if chosen is None:
            assert not costs
            continue
        assert trace.machines[chosen[0]].name == rank.by_cost(costs, fragmentation.tolerance(weights.DEFAULTS))[0]
        fleet.put(ask, *chosen)
        policy.changed(chosen[0])
    assert fleet.used > fleet.capacity // 2
    assert (fleet.free >= 0).all()


def test_fgds_arrays_are_f_of_the_paper() -> None:
    trace = traces.generate(MIX, cards=40, seed=5)
    fleet = FleetArrays(trace.machines)
    fleet.free[fleet.total > 0] -= np.arange((fleet.total > 0).sum()) * 37 % 900
    policy = Fgd(fleet, trace)
    state = policy._state(fleet.room())
    got = policy._fragmentation(state, fleet.cpu, fleet.memory)
    for node in range(len(trace.machines)):
        stranded = [fgd.stranded(on_node(fleet, node), ask) for ask in policy._classes.asks]
        assert got[node] == pytest.approx(np.array(stranded) @ policy._popularity)


@pytest.mark.parametrize("policy", baselines.names())
def test_every_policy_fills_a_small_cluster(policy: str) -> None:
    trace = traces.generate(MIXES["half"], cards=16, seed=0)
    fleet = FleetArrays(trace.machines)
    chooser = baselines.POLICIES[policy](fleet, trace, 0)
    found = simulation.fill(trace, fleet, chooser, seed=1)
    assert 40 < found.at_capacity <= found.at_end <= 100


def test_at_a_steady_load_all_that_does_not_leave_is_accounted() -> None:
    trace = Trace([TraceNode("n", 4, 100_000, 100_000, 1)], [PodAsk(1, 500, 0, 0, 1, 1, 1)], np.ones(1))
    fleet = FleetArrays(trace.machines)
    found = simulation.steady(trace, fleet, baselines.POLICIES["binpack"](fleet, trace, 0), 0.5, 1)
    assert 30 < found.allocated < 70
    assert fleet.used == CARD * 4 - fleet.free.sum()


@pytest.mark.heavy
def test_files_are_read_and_numbers_out_of_range_are_named(tmp_path: Path) -> None:
    nodes, pods, result = tmp_path / "nodes.csv", tmp_path / "pods.csv", tmp_path / "r.json"
    nodes.write_text("sn,cpu_milli,memory_mib,gpu,model\nn1,64000,262144,2,T4\nn2,96000,262144,8,V100\nn3,8000,1,0,\n")
    rows = "p1,4000,8192,1,460,\np2,8000,8192,1,1000,V100|T4\np3,4000,8192,1,460,\np4,2000,1024,0,0,\n"
    pods.write_text("name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos\n" + rows.replace("\n", ",LS\n"))
    trace = traces.read(nodes, pods)
    assert trace.capacity == 10_000
    assert [round(weight, 2) for weight in trace.weights] == [0.5, 0.25, 0.25]
    assert trace.asks[1] == PodAsk(1, 0, 0, 1, 8000, 8192, 3)
    files = ["--nodes", str(nodes), "--pods", str(pods)]
    command = [
        sys.executable,
        "-m",
        "benchmarks.packing",
        *files,
        "--policy",
        "fgd",
        "--seeds",
        "2",
        "--json",
        str(result),
    ]
    subprocess.run(command, check=True, capture_output=True)
    (row,) = json.loads(result.read_text())["rows"]
    assert row["id"] == "fill.nodes.fgd"
    nodes.write_text("sn,cpu_milli,memory_mib,gpu,model\nn1,many,262144,2,T4\n")
    with pytest.raises(ValueError, match="cpu_milli: 'many'"):
        traces.read(nodes, pods)


@pytest.mark.heavy
async def test_the_verbs_choose_the_nodes_and_cards_that_the_arrays_choose() -> None:
    trace = traces.generate(MIX, cards=30, seed=4, cpu_only=False)
    fleet, verbs = FleetArrays(trace.machines), VerbsFleet(trace.machines, "fragmentation")
    policy = Fragmentation(fleet)
    for n in np.random.default_rng(2).choice(len(trace.asks), size=100, p=trace.weights):
        ask = trace.asks[n]
        policy.see(ask)
        chosen = policy.choose(ask)
        placed = await verbs.place(ask)
        assert placed == (None if chosen is None else (trace.machines[chosen[0]].name, sorted(chosen[1])))
        if chosen is not None:
            fleet.put(ask, *chosen)
            policy.changed(chosen[0])
    assert fleet.used > fleet.capacity // 2
