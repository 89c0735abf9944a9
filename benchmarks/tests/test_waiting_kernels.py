"""Kernels that wait for their host: the figures, and the program that launches them on the simulated GPU."""

import pytest

from benchmarks.compute import waiting_kernels
from benchmarks.compute.load import run_together
from benchmarks.compute.node import BenchmarkNode
from benchmarks.container import native_env
from simgpu.world import World

S = 1e6  # in us


def test_what_is_used_at_the_same_time_counts_once() -> None:
    used = waiting_kernels.union([(5, 7), (0, 2), (1, 3), (6, 6.5)])
    assert used == [(0, 3), (5, 7)]
    assert waiting_kernels.within(used, 2, 6) == 2


def test_the_card_is_used_by_kernels_and_by_those_that_wait() -> None:
    times = {"ends_us": [2, 12], "waits_us": [0, 2, 15, 30]}
    answer = {"kernel_us": 1.0 * S} | {name: [int(at * S) for at in values] for name, values in times.items()}
    figures = waiting_kernels.used_figures(answer, 20.0)
    assert figures["card used %"] == pytest.approx(100 * (2 + 1 + 5) / 20)
    assert figures["kernels %"] == pytest.approx(10)
    assert figures["worst 10 s %"] == pytest.approx(60)


def test_the_neighbour_waits_between_the_ends_of_its_kernels() -> None:
    figures = waiting_kernels.neighbour_figures([1000, 2000, 3000, 7000])
    assert figures["neighbour %"] == 50
    assert figures["neighbour p50 ms"] == 1


def test_timings_may_take_what_the_share_leaves() -> None:
    goals = waiting_kernels.timing_goals(waiting_kernels.FLAGS, 0.005, 20, "fixed")
    assert str(goals["20 flags ms"]) == "<= 30"
    assert str(waiting_kernels.timing_goals(waiting_kernels.TUNER, 0.005, 40, "burst")["20 timings ms"]) == "<= 6"


@pytest.mark.slow
@pytest.mark.parametrize("cores", [20, None])
def test_no_kernel_waits_in_vain_for_the_program_that_sets_its_flag(
    world: World, monkeypatch: pytest.MonkeyPatch, cores: int | None
) -> None:
    for name, value in world.environment().items():
        monkeypatch.setenv(name, value)
    with BenchmarkNode() as node:
        env = node.container(cores) if cores else native_env()
        (answer,) = run_together([(waiting_kernels.FLAGS, env)], 0.5)
    assert waiting_kernels.timing_figures(waiting_kernels.FLAGS, answer)["given up"] == 0
    assert answer["rounds_us"]


@pytest.mark.slow
@pytest.mark.parametrize("cores", [20, None])
def test_timings_are_as_natively_and_no_delay_kernel_gives_up(
    world: World, monkeypatch: pytest.MonkeyPatch, cores: int | None
) -> None:
    for name, value in world.environment().items():
        monkeypatch.setenv(name, value)
    with BenchmarkNode() as node:
        env = node.container(cores) if cores else native_env()
        (answer,) = run_together([(waiting_kernels.TUNER, env)], 0.5)
    figures = waiting_kernels.timing_figures(waiting_kernels.TUNER, answer)
    assert figures["given up"] == 0
    assert figures["measured ms"] == pytest.approx(0.1, rel=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["waiting", "unknown"])
def test_a_program_that_overdraws_stays_within_its_share(
    world: World, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    for name, value in world.environment().items():
        monkeypatch.setenv(name, value)
    seconds = 3.0
    with BenchmarkNode() as node:
        load = waiting_kernels.DelayedLoad(kind, 1000)
        (answer,) = run_together([(load, node.container(waiting_kernels.SCARCE))], seconds)
    used = waiting_kernels.used_figures(answer, seconds)["card used %"]
    assert 0 < used <= waiting_kernels.SCARCE + 100 * waiting_kernels.BOUND_S / seconds
