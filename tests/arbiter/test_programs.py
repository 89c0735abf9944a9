"""The rows of the published tables in virtual time: what a program's latency is, and what its neighbour keeps."""

from collections.abc import Callable

import pytest

from tests.arbiter.programs import WaitingInference
from tests.arbiter.simulation import HANDOVER, MS, SECOND, US, Demand, Inference, Process, World, demand
from tests.arbiter.test_schedule import Visitor

MakeWorld = Callable[..., World]
HALF, FIXED, BURST = demand(50, "burst"), demand(30), demand(40, "burst")
BEST_EFFORT = demand(0, "best-effort")
ALONE = 900 * US


def percentile(times: list[int], percent: int) -> int:
    return sorted(times)[min(len(times) - 1, len(times) * percent // 100)]


def beside_burner(world: World, inference: Inference, burner: Demand, kernel: int) -> float:
    """Returns the burner's share; the inference's latencies are those of the same time."""
    Process(world, world.tenant(burner), kernel)
    world.run(SECOND)
    inference.latencies.clear()
    return world.shares(3 * SECOND)[1]


@pytest.mark.parametrize("kernel", [100 * US, 500 * US])
@pytest.mark.parametrize(("asked", "burner"), [(HALF, HALF), (FIXED, BEST_EFFORT)])
@pytest.mark.parametrize("jitter", [0, 2 * MS])
def test_a_wait_for_the_card_costs_the_burner_nothing_after_its_end(
    make_world: MakeWorld, asked: Demand, burner: Demand, jitter: int, kernel: int
) -> None:
    """Two kernels of 0.45 ms every 10 ms, 0.9 ms and two handovers: the burner's goal is 85 %."""
    world = make_world()
    inference = WaitingInference(world, world.tenant(asked), jitter=jitter)
    assert beside_burner(world, inference, burner, kernel) >= 86.5
    assert percentile(inference.latencies, 50) <= ALONE + HANDOVER + (0 if jitter == 0 else kernel // 2 + 250 * US)
    assert percentile(inference.latencies, 99) <= 2 * ALONE


def test_a_turn_is_not_revoked_while_its_host_waits_for_more_work_than_estimated(make_world: MakeWorld) -> None:
    world = make_world()
    inference = WaitingInference(world, world.tenant(HALF), accuracy=50, jitter=2 * MS)
    beside_burner(world, inference, HALF, 500 * US)
    assert inference.revoked == 0


@pytest.mark.parametrize("has_starved", [False, True])
def test_neither_a_pause_of_the_holder_nor_the_starvation_floor_delays_a_latency_sensitive_tenant(
    make_world: MakeWorld, has_starved: bool
) -> None:
    """The holder keeps its turn over its short pauses, unless it is asked to yield. A request waits for a kernel of
    0.5 ms, 0.15 ms more in flight, and a handover."""
    world = make_world()
    Visitor(world, world.tenant(BURST), 300 * US)
    inference = Inference(world, world.tenant(HALF), jitter=2 * MS)
    if has_starved:
        Process(world, world.tenant(BEST_EFFORT), 200 * US)
    world.run(SECOND)
    inference.latencies.clear()
    starved = world.shares(3 * SECOND)[-1]
    assert percentile(inference.latencies, 99) <= ALONE + HANDOVER + 750 * US
    assert not has_starved or starved >= 0.8
