"""The rows of the published tables in virtual time: what a program's latency is, and what its neighbour keeps."""

import ctypes
from collections.abc import Callable

import pytest

from tests.arbiter.programs import RestingInference, WaitingInference
from tests.arbiter.simulation import HANDOVER, MS, SECOND, START, U64, US, Demand, Inference, Process, World, demand
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


@pytest.mark.heavy
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


@pytest.mark.heavy
@pytest.mark.parametrize("jitter", [0, 100 * US])
@pytest.mark.parametrize("kernel", [100 * US, 460 * US, 500 * US])
def test_a_program_that_sleeps_between_requests_finds_the_card_free(
    make_world: MakeWorld, kernel: int, jitter: int
) -> None:
    """Its arrivals have no interval: each follows 8 ms after the end of a visit, which may be late. A visit of 0.9 ms,
    two handovers and 8 ms of sleep leave 85 % of the card."""
    world = make_world()
    inference = RestingInference(world, world.tenant(BURST), jitter=jitter)
    assert beside_burner(world, inference, BEST_EFFORT, kernel) >= 84
    assert percentile(inference.latencies, 50) <= 1.25 * ALONE
    assert percentile(inference.latencies, 99) <= (1.6 if jitter == 0 else 1.8) * ALONE


class PausePredictor(ctypes.Structure):
    _fields_ = (("left_at", U64), ("pause", U64), ("confidence", ctypes.c_uint32))


def predict(pure: ctypes.CDLL, pauses: list[int]) -> int:
    """The pause that is predicted after the given ones, with visits of 1 ms; 0: no prediction."""
    predictor, now = PausePredictor(), START
    for pause in pauses:
        pure.pause_predictor_note_left(ctypes.byref(predictor), U64(now))
        pure.pause_predictor_note_arrival(ctypes.byref(predictor), U64(now + pause))
        now += pause + MS
    pure.pause_predictor_note_left(ctypes.byref(predictor), U64(now))
    pure.pause_predictor_next.restype = U64
    return max(0, int(pure.pause_predictor_next(ctypes.byref(predictor), U64(now))) - now)


def test_pauses_are_predicted_after_five_of_one_length(pure: ctypes.CDLL) -> None:
    assert predict(pure, [8 * MS] * 5) == 0
    assert predict(pure, [8 * MS] * 6) == 8 * MS
    assert predict(pure, [4 * MS] * 50) == 0
    assert predict(pure, [1100 * MS] * 50) == 0


def test_a_pause_of_another_length_does_not_end_the_prediction_and_the_second_does(pure: ctypes.CDLL) -> None:
    assert predict(pure, [8 * MS] * 9 + [20 * MS]) == 8 * MS
    assert predict(pure, [8 * MS] * 9 + [20 * MS] * 2) == 0
    assert predict(pure, [8 * MS] * 9 + [20 * MS] * 10) == 20 * MS


def test_a_client_that_is_late_is_expected_no_longer(pure: ctypes.CDLL) -> None:
    predictor = PausePredictor(START, 8 * MS, 8)
    for late, expected in ((199 * US, START + 8 * MS), (200 * US, 0)):
        pure.pause_predictor_next.restype = U64
        assert pure.pause_predictor_next(ctypes.byref(predictor), U64(START + 8 * MS + late)) == expected


def test_a_latency_sensitive_tenant_does_not_wait_for_a_long_kernel_that_its_neighbour_has_paid_for(
    make_world: MakeWorld,
) -> None:
    """The card's time slices serve it beside the kernel once the overrun budget of 250 ms is used up; the simulated
    card has none, so only the time of its turn is looked at."""
    world = make_world()
    inference = WaitingInference(world, world.tenant(demand(30)), jitter=2 * MS)
    long = Process(world, world.tenant(demand(60)), 700 * MS)
    world.run(3 * SECOND)
    inference.waits.clear()
    world.run(10 * SECOND)
    assert long.tenant.used > 0
    assert percentile(inference.waits, 99) <= 300 * MS
