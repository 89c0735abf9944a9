"""Shares and waiting times, also beside false clients, in virtual time.

A share is a percentage of the card's time, measured over at least two seconds after the first second.
"""

import itertools
import statistics
from collections.abc import Callable
from typing import ClassVar

import pytest

from limiter.arbitration import ANY
from tests.arbiter.programs import ClosedLoop
from tests.arbiter.simulation import (
    HANDOVER,
    MS,
    SECOND,
    US,
    Demand,
    FalseClient,
    Inference,
    IntermittentLoad,
    Process,
    Tenant,
    Waiting,
    WaitingForEach,
    Watching,
    World,
    demand,
)

DAY = 86_400 * SECOND
MakeWorld = Callable[..., World]
Behaviour = tuple[int | None, int, int]
BEHAVIOURS: dict[str, Behaviour] = {  # holds, rest and lease of FalseClient
    "never ends": (None, 0, ANY),
    "never ends, and is idle": (None, 0, 0),
    "wants without launching": (0, 0, 0),
    "announces endless work": (0, ANY, 0),
    "ends before the overrun budget": (249 * MS, 0, ANY),
    "announces long work": (9 * MS, 240 * MS, 0),
}


def start_loads(world: World, *demands: Demand, kernel: int = MS // 2) -> list[Process]:
    return [Process(world, world.tenant(asked), kernel) for asked in demands]


def shares(world: World, ns: int = 3 * SECOND) -> list[float]:
    world.run(SECOND)
    for process in world.processes.values():
        process.waits.clear()
    return world.shares(ns)


@pytest.mark.parametrize("cores", [(30, 60), (10, 20, 30, 35), (12,) * 8, (5, 90), (1, 2, 3, 4, 5)])
def test_fixed_shares_are_reached_exactly(make_world: MakeWorld, cores: tuple[int, ...]) -> None:
    world = make_world()
    start_loads(world, *(demand(percent) for percent in cores))
    assert shares(world) == pytest.approx(cores, abs=0.5)


@pytest.mark.parametrize("kernel", [MS // 10, MS, 5 * MS])
def test_two_burst_tenants_lose_two_percent_together(make_world: MakeWorld, kernel: int) -> None:
    world = make_world()
    start_loads(world, demand(50, "burst"), demand(50, "burst"), kernel=kernel)
    got = shares(world)
    assert got == pytest.approx((49.4, 49.4), abs=0.5)
    assert sum(got) >= 97.8


@pytest.mark.parametrize("kernel", [MS * 81 // 20, 5 * MS, 7 * MS, 11 * MS])
def test_a_burst_tenant_does_not_wait_for_two_turns_of_another_in_a_row(make_world: MakeWorld, kernel: int) -> None:
    """Long kernels do not fill their turns, so the shares are kept equal by the lengths of the neighbour's turns."""
    world = make_world()
    for length in (kernel, MS // 10):
        Process(world, world.tenant(demand(50, "burst")), length)
    assert shares(world) == pytest.approx((49, 49), abs=1.5)
    own = max(kernel, 5 * MS)  # still on the card when the next turn is asked for
    longest = own + 20 * MS + 3 * HANDOVER  # a turn is 16 ms and a quarter at most
    assert all(max(process.waits) < longest for process in world.processes.values())


@pytest.mark.heavy
@pytest.mark.parametrize("suitable", [MS // 2, 4 * MS])
def test_turns_are_short_beside_a_program_that_waits_for_each_step(make_world: MakeWorld, suitable: int) -> None:
    """Steps of 4 ms: each waits for one turn of about its own length, as natively, where time slices alternate."""
    world = make_world()
    steps = Process(world, world.tenant(demand(50, "burst")), 4 * MS)
    other = Process(world, world.tenant(demand(50, "burst")), MS // 10)
    world.run(SECOND)
    steps.suitable_turn = suitable
    got = shares(world)
    assert got == pytest.approx((47, 47), abs=1.5)
    assert max(steps.waits) < 4 * MS + 5 * MS + 3 * HANDOVER  # from the end of its launches on
    steps.suitable_turn = 0
    assert sum(shares(world)) >= 97
    assert max(other.waits) > 10 * MS


class LateStep(Process):
    """A process of which each fourth kernel is 1.2 ms longer."""

    lengths = itertools.cycle([MS * 41 // 10] * 3 + [MS * 53 // 10])

    def launch(self) -> None:
        before = self.done_at
        super().launch()
        if self.done_at != before:
            self.kernel = next(self.lengths)


class Watched(Process):
    """A process that remembers the budget of each of its turns."""

    budgets: ClassVar[list[int]] = []

    def launch(self) -> None:
        if self.spent == 0:
            self.budgets.append(self.page.budget_ns)
        super().launch()


@pytest.mark.heavy
@pytest.mark.parametrize("kind", [Process, WaitingForEach])
def test_turns_of_programs_with_little_in_flight_are_as_long_as_others(
    make_world: MakeWorld, kind: type[Process]
) -> None:
    """They are asked back later: by as much earlier than they are to end as is usually in flight."""
    world = make_world()
    Process(world, world.tenant(demand(50, "burst")), 50 * US)
    fixed = kind(world, world.tenant(demand(30)), 50 * US)
    world.run(2 * SECOND)
    turns = set()
    for _ in range(10_000):
        world.run(100 * US)
        turns.add(fixed.page.turn)
    assert 25 <= len(turns - {0}) <= 40  # each of about 10 ms, for 30 percent of a second


def test_one_long_step_does_not_make_one_long_turn(make_world: MakeWorld) -> None:
    """The neighbour gets back what the step took too much in several turns, so that no later step waits for long."""
    world = make_world()
    steps = LateStep(world, world.tenant(demand(50, "burst")), 4 * MS)
    other = Watched(world, world.tenant(demand(50, "burst")), MS // 10)
    steps.suitable_turn = 4 * MS
    world.run(SECOND)
    other.budgets.clear()
    assert shares(world) == pytest.approx((47.8, 47.8), abs=0.3)
    assert max(other.budgets) - min(other.budgets) < MS // 2


def test_the_steps_of_a_tenant_without_a_guarantee_shorten_no_turns(make_world: MakeWorld) -> None:
    world = make_world()
    first, _ = start_loads(world, demand(50, "burst"), demand(50, "burst"))
    idle = IntermittentLoad(world, world.tenant(demand(0, "best-effort")))
    idle.suitable_turn, first.suitable_turn = MS, ANY
    assert sum(shares(world)[:2]) >= 96


def test_an_idle_third_costs_nothing(make_world: MakeWorld) -> None:
    world = make_world()
    start_loads(world, demand(50, "burst"), demand(50, "burst"))
    IntermittentLoad(world, world.tenant(demand(30))).switch(on=False)
    assert shares(world) == pytest.approx((49.4, 49.4, 0), abs=0.5)


@pytest.mark.parametrize("cores", [5, 30, 60, 95])
def test_an_unlimited_neighbour_leaves_a_fixed_share_alone(make_world: MakeWorld, cores: int) -> None:
    world = make_world()
    start_loads(world, demand(cores), demand())
    limited, unlimited = shares(world)
    assert limited == pytest.approx(cores, abs=0.5)
    assert unlimited >= 97 - cores


def test_time_above_the_guarantees_is_divided_by_weight(make_world: MakeWorld) -> None:
    world = make_world()
    start_loads(world, demand(10, "burst"), demand(20, "burst"), demand(30))
    low, high, fixed = shares(world)
    assert fixed == pytest.approx(30, abs=0.5)
    assert low + high >= 67
    assert high / low == pytest.approx(2, rel=0.1)


def test_best_effort_tenants_divide_idle_time_by_weight(make_world: MakeWorld) -> None:
    world = make_world()
    start_loads(world, demand(20, "best-effort"), demand(40, "best-effort"))
    low, high = shares(world)
    assert low + high >= 97
    assert high / low == pytest.approx(2, rel=0.1)


def test_best_effort_gets_the_time_that_a_fixed_share_leaves(make_world: MakeWorld) -> None:
    world = make_world()
    start_loads(world, demand(0, "best-effort"), demand(60))
    lent, fixed = shares(world)
    assert fixed == pytest.approx(60, abs=0.5)
    assert lent >= 36


@pytest.mark.parametrize("pause", [1 * MS, 2 * MS])
def test_a_best_effort_neighbour_costs_a_guaranteed_tenant_one_kernel_and_a_handover(
    make_world: MakeWorld, pause: int
) -> None:
    """Long visits, so that the guaranteed tenant is not latency-sensitive; one that the floor delays is left out."""
    world = make_world()
    world.tenant(demand(40, "burst"))
    visitor = Visitor(world, world.tenants[0], pause)
    Process(world, world.tenant(demand(0, "best-effort")), 200 * US)
    world.run(SECOND)
    visitor.waits.clear()
    world.run(2 * SECOND)
    kernel_and_handover = 200 * US + HANDOVER
    assert sorted(visitor.waits)[int(0.95 * len(visitor.waits))] <= kernel_and_handover + 350 * US


def test_pauses_shorter_than_two_handovers_do_not_end_a_turn(make_world: MakeWorld) -> None:
    world = make_world()
    world.tenant(demand(40, "burst"))
    visitor = Visitor(world, world.tenants[0], 150 * US)
    Process(world, world.tenant(demand(0, "best-effort")), 200 * US)
    world.run(SECOND)
    visitor.waits.clear()
    world.run(SECOND)
    assert len(visitor.waits) < 20  # of 160 visits


class Visitor(Process):
    """Launches for 6 ms, waits for the card, pauses, and begins again."""

    def __init__(self, world: World, tenant: Tenant, pause: int) -> None:
        self.pause, self.left = pause, 12
        super().__init__(world, tenant)

    def has_work(self) -> bool:
        return self.left > 0

    def launched(self, done_at: int) -> None:
        self.left -= 1
        if self.left == 0:
            self.world.at(done_at + self.pause, self.begin)

    def begin(self) -> None:
        self.left = 12
        self.step()


def test_above_the_high_watermark_best_effort_shrinks_to_the_floor(make_world: MakeWorld) -> None:
    world = make_world()
    start_loads(world, demand(0, "best-effort"), demand(95, "burst"))
    lent, online = shares(world)
    assert 0.5 <= lent <= 2
    assert online >= 97


def test_between_the_watermarks_best_effort_keeps_its_share(make_world: MakeWorld) -> None:
    world = make_world(high=90, low=5)
    start_loads(world, demand(0, "best-effort"), demand(60))
    lent, _ = shares(world)
    assert lent >= 36
    world = make_world(high=50, low=5)  # above the high watermark: shrinks, although a third of the card is idle
    start_loads(world, demand(0, "best-effort"), demand(60))
    world.run(SECOND)  # until the average over a second is known
    lent, fixed = shares(world)
    assert lent <= 2.5
    assert fixed == pytest.approx(60, abs=0.5)


def test_a_higher_priority_goes_first_and_a_lower_one_has_the_starvation_floor(make_world: MakeWorld) -> None:
    world = make_world()
    start_loads(world, demand(0, "burst", 10), demand(0, "burst", 0))
    high, low = shares(world)
    assert 0.9 <= low <= 1.5  # 3 of 300 ms
    assert high >= 98


def test_priority_does_not_touch_guarantees(make_world: MakeWorld) -> None:
    world = make_world()
    start_loads(world, demand(0, "burst", 100), demand(30, "fixed", 0))
    assert shares(world)[1] == pytest.approx(30, abs=0.5)


def test_processes_of_one_container_divide_its_share(make_world: MakeWorld) -> None:
    world = make_world()
    one, other = world.tenant(demand(50, "burst")), world.tenant(demand(50, "burst"))
    four = [Process(world, one) for _ in range(4)]
    Process(world, other)
    world.run(SECOND)
    before = [len(process.waits) for process in four]
    assert world.shares(3 * SECOND) == pytest.approx((49.4, 49.4), abs=0.5)
    turns = [len(process.waits) - was for process, was in zip(four, before, strict=True)]
    assert max(turns) - min(turns) <= 1


def test_one_of_eight_waits_for_a_cycle_of_turns(make_world: MakeWorld) -> None:
    world = make_world()
    eight = start_loads(world, *[demand(12)] * 8)
    shares(world)
    assert max(max(process.waits) for process in eight) <= 50 * MS


@pytest.mark.parametrize("first_kernels", [250 * US, 8 * MS])
def test_no_small_program_is_passed_over_by_fifteen_others(make_world: MakeWorld, first_kernels: int) -> None:
    """All are within their guarantees, and the one whose first kernels are long counts as not latency-sensitive.

    On an H200 it had nothing for three seconds.
    """
    world = make_world()
    others = [ClosedLoop(world, world.tenant(demand(6, "burst"))) for _ in range(15)]
    tenant = world.tenant(demand(6, "burst"))
    loading = Process(world, tenant, kernel=first_kernels)
    world.run(300 * MS)
    loading.die()
    late = ClosedLoop(world, tenant)
    world.run(3 * SECOND)
    assert max(late.latencies) <= 150 * MS
    assert max(max(other.latencies) for other in others) <= 300 * MS
    assert len(late.latencies) >= 0.8 * min(len(other.latencies) for other in others)


@pytest.mark.parametrize("into_turn", [MS // 2, 3 * MS, 5 * MS + MS // 2])
def test_a_stall_of_the_machine_is_charged_to_no_tenant(make_world: MakeWorld, into_turn: int) -> None:
    world = make_world()
    eight = start_loads(world, *[demand(12)] * 8)
    shares(world)
    world.run(into_turn)
    world.stall(60 * MS)
    world.run(SECOND)
    assert max(max(process.waits) for process in eight) <= 120 * MS


@pytest.mark.parametrize(
    ("quick", "burner"),
    [
        (demand(30), demand()),
        (demand(50, "burst"), demand(50, "burst")),
        (demand(), demand(0, "best-effort")),
        (demand(20), demand(60)),
    ],
)
def test_a_latency_sensitive_tenant_interrupts_a_turn(make_world: MakeWorld, quick: Demand, burner: Demand) -> None:
    """A request of two kernels of 0.45 ms waits for a kernel of 0.5 ms, 0.15 ms more in flight, and a handover."""
    world = make_world()
    inference = Inference(world, world.tenant(quick), jitter=2 * MS)
    start_loads(world, burner)
    _, left = shares(world)
    assert max(inference.latencies[100:]) <= 2.15 * MS
    assert left >= (59 if burner.policy == 0 else 85)


def test_a_tenant_that_is_behind_its_guarantee_goes_before_one_that_is_ahead(make_world: MakeWorld) -> None:
    """A server of prompts, 16 ms each, beside a decoder that uses nearly all of the card, a token of 2 ms at a time."""
    world = make_world()
    decoder = Inference(world, world.tenant(demand(50, "burst")), kernel=MS, period=2100 * US)
    prompts = Inference(world, world.tenant(demand(50, "burst")), kernel=8 * MS, period=160 * MS, jitter=80 * MS)
    used, _ = shares(world)
    assert statistics.median(prompts.latencies[3:]) <= 16 * MS + 2 * MS + 3 * HANDOVER
    assert max(prompts.latencies[3:]) <= 21 * MS
    assert used >= 75
    assert max(decoder.latencies) <= 22 * MS  # the burst of the other, by its credit, and a token


def test_a_tenant_that_is_ahead_waits_no_longer_than_usual_while_another_catches_up(make_world: MakeWorld) -> None:
    """A container with 90 % works again, after short work now and then, beside one with 10 % that had nearly all."""
    world = make_world()
    small = Process(world, world.tenant(demand(10, "burst")))
    large = IntermittentLoad(world, world.tenant(demand(90, "burst")))
    for _ in range(5):
        large.switch(on=True)
        world.run(20 * MS)
        large.switch(on=False)
        world.run(SECOND)
    small.waits.clear()
    large.switch(on=True)
    world.run(2 * SECOND)
    catching_up = max(small.waits)
    small.waits.clear()
    world.run(2 * SECOND)
    assert catching_up <= max(small.waits) + MS


def test_tenants_that_have_what_is_guaranteed_to_them_do_not_overtake_each_other(make_world: MakeWorld) -> None:
    """The one that uses little is behind all the time, but the other is not ahead of its guarantee."""
    world = make_world()
    load = Process(world, world.tenant(demand(90, "burst")), MS)
    rare = Inference(world, world.tenant(demand(10, "burst")), kernel=4 * MS, period=160 * MS, jitter=80 * MS)
    shares(world)
    assert statistics.median(rare.latencies[3:]) > 10 * MS
    assert max(load.waits) <= 17 * MS


def test_a_returning_tenant_has_its_share_within_12_ms_and_leaves_it_at_once(make_world: MakeWorld) -> None:
    world = make_world()
    one, other = world.tenant(demand(50, "burst")), world.tenant(demand(50, "burst"))
    Process(world, one)
    neighbour = IntermittentLoad(world, other)
    world.run(SECOND)
    for away in (20 * MS, 300 * MS, 3 * SECOND):
        neighbour.switch(on=False)
        world.run(10 * MS)
        idle = world.shares(away)
        assert idle[0] >= (95 if away > 100 * MS else 60)
        neighbour.waits.clear()
        neighbour.switch(on=True)
        world.run(100 * MS)
        assert neighbour.waits[0] <= 12 * MS
        assert world.shares(200 * MS) == pytest.approx((49, 49), abs=5)  # 5 percentage points are one turn


def test_a_tenant_alone_is_uncontended_and_asks_at_most_once_a_second(make_world: MakeWorld) -> None:
    world = make_world()
    (alone,) = start_loads(world, demand(50, "burst"))
    IntermittentLoad(world, world.tenant(demand())).switch(on=False)
    assert shares(world)[0] >= 99.9
    assert alone.page.contended == 0


@pytest.mark.heavy
def test_uncontended_time_is_not_charged(make_world: MakeWorld) -> None:
    world = make_world()
    one, other = world.tenant(demand(50, "burst")), world.tenant(demand(50, "burst"))
    Process(world, one)
    neighbour = IntermittentLoad(world, other)
    neighbour.switch(on=False)
    world.run(60 * SECOND)
    neighbour.switch(on=True)
    assert world.shares(SECOND) == pytest.approx((49, 49), abs=2)


@pytest.mark.heavy
def test_300_waiting_tenants_all_get_turns(make_world: MakeWorld) -> None:
    world = make_world()
    processes = start_loads(world, *[demand(30)], *[demand()] * 299)
    guaranteed, *others = shares(world)
    assert guaranteed == pytest.approx(30, abs=0.5)
    assert max(processes[0].waits) <= 7 * MS
    assert sum(others) >= 62
    assert min(others) > 0


@pytest.mark.heavy
def test_free_at_is_exact_after_any_number_of_turns(make_world: MakeWorld) -> None:
    world = make_world()
    processes = start_loads(world, demand(50, "burst"), demand(50, "burst"))
    world.run(20 * SECOND)
    assert max(abs(process.free_at_error) for process in processes) <= MS // 10


def test_a_changed_share_holds_from_the_next_turn(make_world: MakeWorld) -> None:
    world = make_world()
    one, other = start_loads(world, demand(30), demand(60))
    world.run(SECOND)
    world.change(one.tenant, demand(60))
    world.change(other.tenant, demand(30))
    world.run(200 * MS)
    assert world.shares(2 * SECOND) == pytest.approx((60, 30), abs=0.5)


@pytest.mark.heavy
@pytest.mark.parametrize("guarantee", [0, 30])
@pytest.mark.parametrize("behaviour", BEHAVIOURS)
def test_false_messages_take_nothing_from_other_tenants(make_world: MakeWorld, behaviour: str, guarantee: int) -> None:
    world = make_world()
    honest = start_loads(world, demand(40), demand(20))
    FalseClient(world, world.tenant(demand(guarantee)), *BEHAVIOURS[behaviour])
    got = shares(world)
    is_paid_for = guarantee > 0 and behaviour == "announces long work"  # as kernels of 0.25 s within the guarantee
    assert all(
        -1.5 <= share - cores <= 2.5 for share, cores in zip(got, (40, 20), strict=False)
    )  # 2.5: of the first wait
    assert max(max(process.waits) for process in honest) <= (300 if is_paid_for else 60) * MS


@pytest.mark.heavy
@pytest.mark.parametrize("error", [10 * DAY, -500 * SECOND, ANY - 2000 * SECOND], ids=["ahead", "behind", "overflow"])
@pytest.mark.parametrize("kind", [Process, Inference], ids=["load", "inference"])
@pytest.mark.parametrize(
    ("other", "false"),
    [
        (demand(50, "burst"), demand(0, "best-effort")),
        (demand(80), demand(20)),
        (demand(30, "burst"), demand(30, "burst")),
    ],
    ids=["best-effort", "fixed", "burst"],
)
def test_times_of_a_false_clock_make_a_tenant_a_continuous_load_at_most(
    make_world: MakeWorld, other: Demand, false: Demand, kind: type[Process], error: int
) -> None:
    """The region's times are wrong by `error`; what the tenant does and says otherwise is right."""

    def shares_beside(kind: type[Process], clock_error: int) -> list[float]:
        world = make_world()
        start_loads(world, other)
        liar = world.tenant(false)
        liar.clock_error = clock_error
        kind(world, liar)
        return shares(world)

    of_loads, of_liar = shares_beside(Process, 0), shares_beside(kind, error)
    assert of_liar[0] >= of_loads[0] - 2.5
    assert of_liar[1] <= of_loads[1] + 2.5


def test_the_first_turn_with_false_messages_lasts_at_most_a_quarter_of_a_second(make_world: MakeWorld) -> None:
    world = make_world()
    (honest,) = start_loads(world, demand(50))
    world.run(SECOND)
    FalseClient(world, world.tenant(demand(30)), *BEHAVIOURS["never ends"])
    honest.waits.clear()
    world.run(3 * SECOND)
    assert 200 * MS <= max(honest.waits) <= 290 * MS
    assert len([wait for wait in honest.waits if wait > 20 * MS]) <= 2


@pytest.mark.parametrize("guarantee", [0, 30])
def test_a_reconnecting_client_keeps_its_negative_credit(make_world: MakeWorld, guarantee: int) -> None:
    world = make_world()
    start_loads(world, demand(50))
    tenant = world.tenant(demand(guarantee))

    def reconnect(former: Process | None = None) -> None:
        if former:
            former.die()
        false_client = FalseClient(world, tenant, *BEHAVIOURS["never ends"])
        world.at(world.now + 40 * MS, lambda: reconnect(false_client))

    reconnect()
    assert shares(world)[0] == pytest.approx(50, abs=1.5)


def test_the_turn_of_a_client_that_dies_ends_at_once(make_world: MakeWorld) -> None:
    world = make_world()
    one, other = start_loads(world, demand(0), demand(0))
    world.run(SECOND)
    while not one.turn:
        world.run(MS // 10)
    wanted_at, died_at = other.wanted_at or world.now, world.now
    one.die()
    other.waits.clear()
    world.run(20 * MS)
    assert wanted_at + other.waits[0] <= died_at + MS
    assert world.shares(SECOND)[1] >= 99


@pytest.mark.parametrize(
    ("policy", "takes", "expected"),
    [
        ("best-effort", MS // 2, 0),  # it was done earlier than announced
        ("best-effort", MS, 0),
        ("best-effort", MS * 3 // 2, 0),
        ("best-effort", 10 * MS, MS * 6 // 10),  # after the announced time: such a client is not believed for longer
        ("best-effort", None, MS * 6 // 10),
        ("burst", MS, -150 * US),  # before the announced time: the first launch needs as long to reach the card
        ("burst", MS * 3 // 2, -150 * US),
        ("fixed", MS, -300 * US),  # its launches are not queued
    ],
)
def test_a_best_effort_turn_begins_after_the_work_before_it_and_others_a_little_earlier(
    make_world: MakeWorld, policy: str, takes: int | None, expected: int
) -> None:
    world = make_world()
    waiting = Waiting(world, world.tenant(demand(40, "burst")), takes)
    next_one = Watching(world, world.tenant(demand(0 if policy == "best-effort" else 95, policy)))
    world.run(SECOND)
    assert len(waiting.drains) > 50
    for announced, drained in waiting.drains[2:-1]:
        ended = announced if drained is None or expected else drained
        after = next(given for given in next_one.given if given > announced - Waiting.ANNOUNCED)
        assert after - ended == pytest.approx(expected, abs=US)


def test_a_container_that_is_removed_makes_room(make_world: MakeWorld) -> None:
    world = make_world()
    for _ in range(600):  # more than the table has room for
        one, other = start_loads(world, demand(10), demand(20))
        world.run(MS)
        for process in (one, other):
            process.die()
            world.remove(process.tenant)
