"""Prediction of periodic clients in virtual time: the card is free for them, and others lose little by it."""

import ctypes
from collections.abc import Callable, Iterable

import pytest

from tests.arbiter.simulation import (
    MS,
    SECOND,
    START,
    U64,
    US,
    Demand,
    FalseClient,
    Inference,
    Process,
    Tenant,
    World,
    demand,
)
from tests.arbiter.test_schedule import start_loads

MakeWorld = Callable[..., World]
HALF = demand(50, "burst")
ALONE, HANDOVER = 900 * US, 200 * US


class ArrivalPredictor(ctypes.Structure):
    _fields_ = (("last_arrival_at", U64), ("expected_at", U64), ("interval", U64), ("confidence", ctypes.c_uint32))


def predict(pure: ctypes.CDLL, arrivals: Iterable[int]) -> int:
    """The predicted next arrival after the given ones, in ns since START; 0: no prediction."""
    predictor = ArrivalPredictor()
    for arrival in arrivals:
        pure.arrival_predictor_note_arrival(ctypes.byref(predictor), U64(START + arrival))
    pure.arrival_predictor_next.restype = U64
    return max(0, int(pure.arrival_predictor_next(ctypes.byref(predictor))) - START)


def regular_arrivals(count: int, interval: int = 10 * MS) -> list[int]:
    return [number * interval for number in range(count)]


@pytest.mark.parametrize("interval", [8 * MS, 10 * MS, 16_666_667, 33_333_333, 900 * MS])
def test_a_client_is_predicted_after_five_regular_arrivals(pure: ctypes.CDLL, interval: int) -> None:
    assert predict(pure, regular_arrivals(6, interval)) == 0
    assert predict(pure, regular_arrivals(7, interval)) == 7 * interval


@pytest.mark.parametrize("interval", [MS, 7 * MS, 1100 * MS])
def test_arrivals_with_too_short_or_too_long_periods_are_not_predicted(pure: ctypes.CDLL, interval: int) -> None:
    assert predict(pure, regular_arrivals(50, interval)) == 0


def test_small_jitter_is_tolerated_and_large_jitter_is_not(pure: ctypes.CDLL) -> None:
    small_jitter = [arrival + (number % 3) * 100 * US for number, arrival in enumerate(regular_arrivals(60))]
    assert abs(predict(pure, small_jitter) - 600 * MS) <= 200 * US
    large_jitter = [arrival + number * 7 % 5 * 400 * US for number, arrival in enumerate(regular_arrivals(60))]
    assert predict(pure, large_jitter) == 0


def test_one_late_arrival_does_not_shift_the_predicted_times(pure: ctypes.CDLL) -> None:
    late = regular_arrivals(20)
    late[15] += 4 * MS
    assert predict(pure, late[:16]) == 160 * MS
    assert predict(pure, late) == 200 * MS


def test_two_late_arrivals_end_the_prediction_and_a_new_period_is_learned(pure: ctypes.CDLL) -> None:
    shifted = regular_arrivals(15) + [arrival + 154 * MS for arrival in regular_arrivals(20)]
    assert predict(pure, shifted[:17]) == 0
    assert predict(pure, shifted) == 354 * MS


@pytest.mark.heavy
@pytest.mark.parametrize("kernel", [MS // 10, MS // 2, MS])
@pytest.mark.parametrize(("quick", "burner"), [(HALF, HALF), (demand(30), demand(0, "best-effort"))])
def test_a_periodic_client_finds_the_card_free(
    make_world: MakeWorld, quick: Demand, burner: Demand, kernel: int
) -> None:
    world = make_world()
    inference = Inference(world, world.tenant(quick))
    start_loads(world, burner, kernel=kernel)
    world.run(SECOND)
    inference.latencies.clear()
    _, left = world.shares(3 * SECOND)
    assert sorted(inference.latencies)[150] <= ALONE + HANDOVER + (50 * US if kernel < MS else 200 * US)
    assert left >= (84 if kernel < MS else 80)


@pytest.mark.parametrize("period", [16 * MS, 33 * MS, 100 * MS])
def test_a_continuous_load_has_the_card_between_expected_arrivals(make_world: MakeWorld, period: int) -> None:
    world = make_world()
    inference = Inference(world, world.tenant(HALF), period=period)
    start_loads(world, HALF)
    world.run(2 * SECOND)
    inference.latencies.clear()
    _, left = world.shares(4 * SECOND)
    assert sorted(inference.latencies)[len(inference.latencies) // 2] <= ALONE + HANDOVER + 300 * US
    assert left >= 100 - 100 * 1.9 * MS / period


class IdlePeriodicClient(FalseClient):
    """Asks for a turn periodically and leaves it idle; every `skips`-th time it does not ask (0: it always asks)."""

    def __init__(self, world: World, tenant: Tenant, period: int, skips: int) -> None:
        self.period, self.skips, self.count = period, skips, 0
        super().__init__(world, tenant, None)
        world.at(world.now + MS, self.come)

    def step(self) -> None:
        pass

    def come(self) -> None:
        self.count += 1
        self.world.at(self.world.now + self.period, self.come)
        self.tenant.busy_until = 0
        if not self.skips or self.count % self.skips:
            self.want()


def held_ns(world: World, tenants: Iterable[Tenant]) -> int:
    return sum(world.library.schedule_held_ns(world.schedule, tenant.index) for tenant in tenants)


@pytest.mark.parametrize("skips", [0, 2, 3, 7])
def test_idle_turns_of_a_predicted_client_are_charged(make_world: MakeWorld, skips: int) -> None:
    """Each of its turns is idle for 1 ms, after which the arbiter revokes it."""
    world = make_world()
    burner = Process(world, world.tenant(HALF))
    false_client = world.tenant(HALF)
    IdlePeriodicClient(world, false_client, 10 * MS, skips)
    world.run(SECOND)
    before = held_ns(world, [false_client])
    share, _ = world.shares(3 * SECOND)
    lost = 100 - share
    assert share >= 81
    assert (
        100 * (held_ns(world, [false_client]) - before) / (3 * SECOND) >= lost - 6
    )  # the handovers to it and back are not charged
    assert burner.is_alive


def test_many_predicted_clients_with_idle_turns_take_at_most_their_guarantee(make_world: MakeWorld) -> None:
    world = make_world()
    honest = Process(world, world.tenant(demand(60)))
    for number in range(8):
        world.run(1300 * US)
        IdlePeriodicClient(world, world.tenant(demand(3)), 10 * MS + number * US, 0)
    world.run(SECOND)
    assert world.shares(3 * SECOND)[0] == pytest.approx(60, abs=1.5)
    assert max(honest.waits) <= 60 * MS


class ObservedInference(Inference):
    """Adds up for how long the card was kept free for it."""

    kept = 0

    def begin(self) -> None:
        if self.left == 0 and self.page.turn not in (0, self.turn, self.ended):
            self.kept += max(0, self.world.now - (self.page.free_at - HANDOVER))
        super().begin()


@pytest.mark.parametrize("kernel", [400 * US, 500 * US, 700 * US])
def test_the_card_is_kept_free_for_at_most_a_thirty_second_of_its_time(make_world: MakeWorld, kernel: int) -> None:
    """Without the bound, three clients with a period of 10 ms would keep the card free for 5 to 7 % of its time."""
    world = make_world()
    start_loads(world, demand(), kernel=kernel)
    three = []
    for _ in range(3):
        world.run(10 * MS // 3)
        three.append(ObservedInference(world, world.tenant(demand(30)), kernel=50 * US))
    world.run(SECOND)
    before = sum(process.kept for process in three)
    world.run(3 * SECOND)
    assert 100 * (sum(process.kept for process in three) - before) / (3 * SECOND) == pytest.approx(100 / 32, abs=0.1)


def test_a_client_that_never_returns_costs_nothing(make_world: MakeWorld) -> None:
    world = make_world()
    inference = Inference(world, world.tenant(HALF))
    start_loads(world, HALF)
    world.run(SECOND)
    inference.period = 3600 * SECOND
    world.run(100 * MS)
    assert world.shares(SECOND)[1] >= 99.5
