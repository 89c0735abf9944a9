"""One that comes at regular moments finds the card free, and nobody lives off being expected: in virtual time."""

import ctypes
from collections.abc import Callable, Iterable

import pytest

from tests.arbiter.simulation import MS, SECOND, START, U64, US, Ask, Inference, Liar, Process, Tenant, World, ask
from tests.arbiter.test_schedule import burners

MakeWorld = Callable[..., World]
HALF = ask(50, "burst")
ALONE, HANDOVER = 900 * US, 200 * US


class Rhythm(ctypes.Structure):
    _fields_ = (("last", U64), ("next", U64), ("interval", U64), ("steady", ctypes.c_uint32))


def foretold(pure: ctypes.CDLL, moments: Iterable[int]) -> int:
    """When one that came then is expected next; 0: nobody knows."""
    rhythm = Rhythm()
    for moment in moments:
        pure.arrival_predictor_note_arrival(ctypes.byref(rhythm), U64(START + moment))
    pure.arrival_predictor_next.restype = U64
    return max(0, int(pure.arrival_predictor_next(ctypes.byref(rhythm))) - START)


def beats(count: int, interval: int = 10 * MS) -> list[int]:
    return [number * interval for number in range(count)]


@pytest.mark.parametrize("interval", [8 * MS, 10 * MS, 16_666_667, 33_333_333, 900 * MS])
def test_a_client_is_predicted_after_five_regular_arrivals(pure: ctypes.CDLL, interval: int) -> None:
    assert foretold(pure, beats(6, interval)) == 0
    assert foretold(pure, beats(7, interval)) == 7 * interval


@pytest.mark.parametrize("interval", [MS, 7 * MS, 1100 * MS])
def test_arrivals_with_too_short_or_too_long_periods_are_not_predicted(pure: ctypes.CDLL, interval: int) -> None:
    assert foretold(pure, beats(50, interval)) == 0


def test_small_jitter_is_tolerated_and_large_jitter_is_not(pure: ctypes.CDLL) -> None:
    wobbly = [moment + (number % 3) * 100 * US for number, moment in enumerate(beats(60))]
    assert abs(foretold(pure, wobbly) - 600 * MS) <= 200 * US
    odd = [moment + number * 7 % 5 * 400 * US for number, moment in enumerate(beats(60))]
    assert foretold(pure, odd) == 0


def test_one_late_arrival_does_not_shift_the_predicted_times(pure: ctypes.CDLL) -> None:
    late = beats(20)
    late[15] += 4 * MS
    assert foretold(pure, late[:16]) == 160 * MS
    assert foretold(pure, late) == 200 * MS


def test_two_late_arrivals_end_the_prediction_and_a_new_period_is_learned(pure: ctypes.CDLL) -> None:
    shifted = beats(15) + [moment + 154 * MS for moment in beats(20)]
    assert foretold(pure, shifted[:17]) == 0
    assert foretold(pure, shifted) == 354 * MS


@pytest.mark.parametrize("kernel", [MS // 10, MS // 2, MS])
@pytest.mark.parametrize(("quick", "burner"), [(HALF, HALF), (ask(30), ask(0, "best-effort"))])
def test_a_periodic_client_finds_the_card_free(make_world: MakeWorld, quick: Ask, burner: Ask, kernel: int) -> None:
    world = make_world()
    inference = Inference(world, world.tenant(quick))
    burners(world, burner, kernel=kernel)
    world.run(SECOND)
    inference.latencies.clear()
    _, left = world.shares(3 * SECOND)
    assert sorted(inference.latencies)[150] <= ALONE + HANDOVER + (50 * US if kernel < MS else 200 * US)
    assert left >= (84 if kernel < MS else 80)


@pytest.mark.parametrize("period", [16 * MS, 33 * MS, 100 * MS])
def test_a_continuous_load_has_the_card_between_expected_arrivals(make_world: MakeWorld, period: int) -> None:
    world = make_world()
    inference = Inference(world, world.tenant(HALF), period=period)
    burners(world, HALF)
    world.run(2 * SECOND)
    inference.latencies.clear()
    _, left = world.shares(4 * SECOND)
    assert sorted(inference.latencies)[len(inference.latencies) // 2] <= ALONE + HANDOVER + 300 * US
    assert left >= 100 - 100 * 1.9 * MS / period


class Regular(Liar):
    """Asks at regular moments, and leaves each turn idle; now and then it does not come at all."""

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


def held(world: World, tenants: Iterable[Tenant]) -> int:
    return sum(world.library.schedule_held_ns(world.schedule, tenant.place) for tenant in tenants)


@pytest.mark.parametrize("skips", [0, 2, 3, 7])
def test_idle_turns_of_a_predicted_client_are_charged(make_world: MakeWorld, skips: int) -> None:
    """Its turns are idle for a millisecond each, as those of anybody are who asks and does nothing."""
    world = make_world()
    burner = Process(world, world.tenant(HALF))
    liar = world.tenant(HALF)
    Regular(world, liar, 10 * MS, skips)
    world.run(SECOND)
    before = held(world, [liar])
    share, _ = world.shares(3 * SECOND)
    lost = 100 - share
    assert share >= 81
    assert 100 * (held(world, [liar]) - before) / (3 * SECOND) >= lost - 6  # handovers, there and back
    assert burner.is_alive


def test_many_predicted_clients_with_idle_turns_take_at_most_their_guarantee(make_world: MakeWorld) -> None:
    world = make_world()
    honest = Process(world, world.tenant(ask(60)))
    for number in range(8):
        world.run(1300 * US)
        Regular(world, world.tenant(ask(3)), 10 * MS + number * US, 0)
    world.run(SECOND)
    assert world.shares(3 * SECOND)[0] == pytest.approx(60, abs=1.5)
    assert max(honest.waits) <= 60 * MS


class Awaited(Inference):
    """Knows for how long the card was kept for it."""

    kept = 0

    def begin(self) -> None:
        if self.left == 0 and self.page.turn not in (0, self.turn, self.ended):
            self.kept += max(0, self.world.now - (self.page.free_at - HANDOVER))
        super().begin()


@pytest.mark.parametrize("kernel", [400 * US, 500 * US, 700 * US])
def test_the_card_is_kept_free_for_at_most_a_thirty_second_of_its_time(make_world: MakeWorld, kernel: int) -> None:
    """Three that come each 10 ms between such kernels would have 5 to 7 percent of it kept."""
    world = make_world()
    burners(world, ask(), kernel=kernel)
    three = []
    for _ in range(3):
        world.run(10 * MS // 3)
        three.append(Awaited(world, world.tenant(ask(30)), kernel=50 * US))
    world.run(SECOND)
    before = sum(each.kept for each in three)
    world.run(3 * SECOND)
    assert 100 * (sum(each.kept for each in three) - before) / (3 * SECOND) == pytest.approx(100 / 32, abs=0.1)


def test_a_client_that_never_returns_costs_nothing(make_world: MakeWorld) -> None:
    world = make_world()
    inference = Inference(world, world.tenant(HALF))
    burners(world, HALF)
    world.run(SECOND)
    inference.period = 3600 * SECOND
    world.run(100 * MS)
    assert world.shares(SECOND)[1] >= 99.5
