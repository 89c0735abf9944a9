"""The parts of a handover, from the times of kernels; and the program that takes them on the simulated GPU."""

from typing import Any

import pytest

from benchmarks.compute import handover
from benchmarks.compute.handover import HandoverLoad, StampedKernel
from benchmarks.compute.load import run_together
from benchmarks.compute.node import BenchmarkNode
from simgpu.world import World

US = 1000


def kernel(program: int, asked: int, launched: int, begin: int, end: int) -> StampedKernel:
    return StampedKernel(program, asked * US, launched * US, begin * US, end * US)


def test_a_handover_is_a_change_of_the_program_that_was_waiting_already() -> None:
    first, second = kernel(0, 0, 1, 10, 20), kernel(1, 5, 25, 30, 40)
    late = kernel(0, 41, 42, 50, 60)  # asked when the card was idle
    assert handover.handovers([first, kernel(0, 1, 2, 20, 25), second, late]) == [(kernel(0, 1, 2, 20, 25), second)]


def test_the_parts_of_a_handover_add_up_to_its_gap() -> None:
    found = [(kernel(0, 0, 1, 10, 20), kernel(1, 5, 23, 30, 40))] * 10
    figures = handover.handover_figures(found)
    assert figures["gap p50 us"] == 10
    assert figures["launched after the end p50 us"] == 3
    assert figures["begun after both p50 us"] == 7
    assert figures["begun before the end %"] == 0


def test_what_is_launched_before_the_end_begins_after_the_end_only() -> None:
    figures = handover.handover_figures([(kernel(0, 0, 1, 10, 20), kernel(1, 5, 8, 30, 40))] * 10)
    assert figures["launched after the end p50 us"] == -12
    assert figures["begun after both p50 us"] == 10


def test_kernels_that_interrupt_each_other_have_no_gap() -> None:
    found = [(kernel(0, 0, 1, 10, 20), kernel(1, 5, 8, 15, 40))] * 20
    assert handover.native_figures(found) == {"begun before the end %": 100}
    with pytest.raises(RuntimeError, match="too few"):
        handover.handover_figures(found)


def test_the_cards_clock_is_the_same_in_both_programs() -> None:
    """The second program took the card's clock for one that is 7 ns further ahead, so its stamps came out earlier."""
    answers: list[dict[str, Any]] = [
        {"clock_ahead_ns": ahead, "asked": [0], "launched": [1], "begins": [1000 - ahead], "ends": [2000 - ahead]}
        for ahead in (100, 107)
    ]
    first, second = handover.kernels_of(answers)
    assert (first.begin, first.end) == (second.begin, second.end) == (900, 1900)


@pytest.mark.slow
def test_the_program_tells_when_its_kernels_began_and_ended(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in world.environment().items():
        monkeypatch.setenv(name, value)
    with BenchmarkNode() as node:
        envs = [node.container(50, "burst") for _ in range(2)]
        answers = run_together([(HandoverLoad("busy"), env) for env in envs], 0.5)
    kernels = handover.kernels_of(answers)
    assert all(one.asked <= one.launched and one.begin < one.end for one in kernels)
    found = handover.handovers(kernels)
    assert len(handover.apart(found)) > 0.9 * len(found) > 5
    assert 50 < handover.handover_figures(found)["gap p50 us"] < 5000
