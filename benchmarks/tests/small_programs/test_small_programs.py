"""What is read of small programs' requests, and of clients that take turns; and one of each on the simulated GPU."""

import statistics
import time

import pytest

from benchmarks import limiter_compute
from benchmarks.compute.node import BenchmarkNode
from benchmarks.programs.old_limiters import OldLimiter
from benchmarks.small_programs import joint_faults, many_clients, old_containers, requests_load, worst_waits
from benchmarks.small_programs.many_clients import Connections, ConnectionTurns
from benchmarks.small_programs.requests_load import Requests, TurnCount
from limiter import local_state
from simgpu.world import World
from vgpu.domain.formats import region


def every(ms: int, seconds: float, took_ms: int = 1) -> Requests:
    ends = range(ms * 1000, int(seconds * 1e6), ms * 1000)
    return Requests(ends, [took_ms * 1000] * len(ends), seconds)


def test_a_request_that_does_not_end_is_as_long_as_the_time_since_the_last_one() -> None:
    stuck = Requests([1000, 2_000_000], [1000, 1000], 10.0)
    assert stuck.longest_ms == stuck.longest_since_ms(5e6) == 8000
    assert Requests([], [], 10.0).longest_ms == 10_000


def test_a_request_that_ends_after_the_time_is_the_longest_but_not_counted() -> None:
    late = Requests([*range(1000, 10_000_000, 1000), 10_500_000], [*[1000] * 9999, 500_000], 10.0)
    assert late.longest_ms == 500
    assert late.rate() == pytest.approx(1000, abs=1)


def test_the_longest_request_of_each_program_is_shown() -> None:
    figures = worst_waits.wait_figures([every(10, 10, 3), *[every(10, 10)] * 14, every(20, 10, 9)])
    assert (figures[worst_waits.LONGEST], figures[worst_waits.STARTED]) == (20, 10)
    assert (figures["longest of program 2 ms"], figures["longest of program 16 ms"]) == (10, 20)
    assert figures["least of one each s"] == pytest.approx(50, rel=0.01)
    names = {goal for scenario in worst_waits.waits() for goal in scenario.goals}
    assert names == {*figures, worst_waits.TURNS}


def test_a_program_that_does_nothing_after_a_fault_is_stuck() -> None:
    before = [end for end in every(10, 12).ends_us if end < 2e6]
    stuck = Requests(before, [1000] * len(before), joint_faults.SECONDS)
    figures = joint_faults.fault_figures([every(10, 12), every(10, 12), stuck])
    assert (figures[joint_faults.STUCK], figures[joint_faults.LEAST_OF]) == (1, 0)
    assert figures[joint_faults.STALL] == pytest.approx(10_010)
    assert joint_faults.fault_figures([every(10, 12)] * 4)[joint_faults.LEAST_OF] == 100


def test_what_old_and_new_lose_is_of_what_all_new_do() -> None:
    mixed = old_containers.small_figures([every(20, 6), *[every(40, 6)] * 3])
    found = old_containers.lost(mixed, [every(10, 6)] * 4)
    assert found[old_containers.OLD_LOSES] == pytest.approx(50, rel=0.01)
    assert found[old_containers.NEW_LOSES] == pytest.approx(25, rel=0.01)


def test_the_turns_of_connections_are_read() -> None:
    got = many_clients.read_turns(iter(["3 2500\n", "0 14000000\n"]))
    assert got == [ConnectionTurns(3, 2.5), ConnectionTurns(0, 14_000)]
    assert many_clients.connection_figures(got)[many_clients.WAIT] == 14_000


def test_an_old_library_has_the_region_that_it_reads() -> None:
    assert region.decode(OldLimiter("0.1.0").region()).cards == ()
    assert len(OldLimiter("0.2.0").region()) == region.SIZE


def test_parts_with_small_programs_run_only_where_they_are_named() -> None:
    parts = {scenario.part for scenario in limiter_compute.scenarios((), 2.0)}
    assert not parts & set(limiter_compute.SMALL_PROGRAMS)
    for part in limiter_compute.SMALL_PROGRAMS:
        assert {scenario.part for scenario in limiter_compute.scenarios([part], 2.0)} == {part}


def use(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in world.environment().items():
        monkeypatch.setenv(name, value)


@pytest.mark.slow
def test_two_programs_serve_requests_beside_each_other(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    use(world, monkeypatch)
    load = requests_load.small_program(64)
    with BenchmarkNode() as node:
        envs = [node.container(50, "burst") for _ in range(2)]
        turns = TurnCount(envs)
        found = requests_load.serve_together([(load, env) for env in envs], 1.0, lambda at: turns.watch(at, 1.0))
    assert all(20 < one.rate() < 1e6 / load.kernels_us for one in found)
    assert statistics.median(found[0].times_us) >= load.kernels_us


@pytest.mark.slow
@pytest.mark.parametrize("abilities", [0, many_clients.JOINS])
def test_every_connection_gets_turns(world: World, monkeypatch: pytest.MonkeyPatch, abilities: int) -> None:
    use(world, monkeypatch)
    with BenchmarkNode() as node:
        sockets = [local_state.socket_of(node.allocate(None, "burst")) for _ in range(8)]
        connections = Connections(sockets, bytes(range(16)), abilities)
        begin = time.monotonic_ns()
        connections.go(begin, begin + 2 * 10**9)
        got = connections.answer()
        connections.end()
    assert all(one.turns > 3 for one in got)
