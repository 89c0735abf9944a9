"""Turns that several tenants of a card hold at the same moment: joint_turns.h as a part of the schedule."""

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from limiter.arbitration import ANY, ClientPage
from tests.arbiter.simulation import MS, SECOND, U64, Demand, World, demand

MakeWorld = Callable[..., World]
STEP = 20 * MS


class JointUse(ctypes.Structure):
    _fields_ = (("gpu_ns", U64), ("waited_ns", U64), ("busy_until", U64))


@dataclass
class Program:
    """A tenant with one client, and what its region says after each step."""

    tenant: int
    client: int
    gpu_ns: int = 0
    waited_ns: int = 0
    share_joint: float = 0.4  # of the card's time, while turns are joint
    share_apart: float = 0.2
    waits: float = 0.3


@dataclass
class Card:
    """Programs that ask again whenever they have no turn, as the limiter does."""

    world: World
    programs: list[Program] = field(default_factory=list)

    def add(self, asked: Demand, *, joins: bool = True, **how: float) -> Program:
        library, schedule = self.world.library, self.world.schedule
        tenant = library.schedule_add(schedule, ctypes.byref(asked), U64(self.world.now))
        client = library.schedule_join(schedule, tenant, ctypes.c_bool(joins))
        self.programs.append(Program(tenant, client, **how))  # type: ignore[arg-type]
        return self.programs[-1]

    def page(self, program: Program) -> ClientPage:
        page: ClientPage = self.world.library.schedule_page(self.world.schedule, program.client).contents
        return page

    @property
    def is_joint(self) -> bool:
        return bool(self.world.library.joint_turns_are_on(self.world.schedule))

    def want(self, program: Program) -> None:
        self.world.library.schedule_want(self.world.schedule, program.client, U64(0), U64(0), U64(self.world.now))

    def step(self, active: list[Program] | None = None) -> None:
        """One heartbeat of the arbiter."""
        library, schedule, now = self.world.library, self.world.schedule, self.world.now
        self.world.now = now = now + STEP
        for program in self.programs if active is None else active:
            program.gpu_ns += int(STEP * (program.share_joint if self.is_joint else program.share_apart))
            program.waited_ns += int(STEP * program.waits)
            if not self.page(program).turn:
                self.want(program)
        for program in self.programs:
            if library.joint_turns_needs_use(schedule, program.tenant, U64(now)):
                use = JointUse(program.gpu_ns, program.waited_ns, 0)
                library.joint_turns_note_use(schedule, program.tenant, ctypes.byref(use), U64(now))
        library.joint_turns_run(schedule, U64(now))
        library.schedule_run(schedule, U64(now))
        turns = [self.page(program) for program in self.programs if self.page(program).turn]
        assert all(page.joint == self.is_joint for page in turns)
        assert self.is_joint or len([page for page in turns if page.contended]) <= 1

    def run(self, seconds: float, active: list[Program] | None = None) -> None:
        for _ in range(int(seconds * SECOND / STEP)):
            self.step(active)


@pytest.fixture
def card(make_world: MakeWorld) -> Card:
    world = make_world()
    world.library.joint_turns_are_on.restype = ctypes.c_bool
    world.library.joint_turns_needs_use.restype = ctypes.c_bool
    return Card(world)


def test_tenants_whose_turns_waste_the_card_all_have_turns_without_a_budget(card: Card) -> None:
    for cores in (30, 30, 40):
        card.add(demand(cores, "burst"), share_joint=0.3)
    card.run(2)
    pages = [card.page(program) for program in card.programs]
    assert card.is_joint
    assert all((page.budget_ns, page.joint, page.contended) == (ANY, 1, 1) and page.turn for page in pages)
    assert len({page.turn for page in pages}) == len(pages)
    assert all(MS <= page.depth_ns <= 10 * MS for page in pages)


def test_best_effort_beside_a_guarantee_may_be_joint(card: Card) -> None:
    card.add(demand(40, "burst"))
    card.add(demand(policy="best-effort"))
    card.run(2)
    assert card.is_joint


@pytest.mark.parametrize(
    ("asked", "joins"),
    [(demand(30, "burst", priority=1), True), (demand(30, "burst"), False)],
    ids=["other priority", "older limiter"],
)
def test_turns_stay_apart_beside(card: Card, asked: Demand, *, joins: bool) -> None:
    card.add(demand(40, "burst"))
    card.add(asked, joins=joins)
    card.run(10)
    assert not card.is_joint


@pytest.mark.parametrize(
    ("second", "share", "is_joint"),
    [
        (demand(30, "fixed"), 0.1, True),
        (demand(30, "burst"), 0.1, True),
        (demand(30, "fixed"), 0.2, False),
        (demand(30, "burst"), 0.2, False),
        (demand(policy="best-effort"), 0.05, False),
    ],
)
def test_a_fixed_share_holds_turns_jointly_only_while_all_use_little_of_their_guarantees(
    card: Card, second: Demand, share: float, *, is_joint: bool
) -> None:
    card.add(demand(30, "fixed"), share_apart=0.1, share_joint=0.12)
    card.add(second, share_apart=share, share_joint=1.2 * share)
    card.run(10)
    assert card.is_joint == is_joint


def test_a_fixed_share_that_is_used_more_ends_joint_turns_within_a_second(card: Card) -> None:
    first, _ = (card.add(demand(30, "fixed"), share_apart=0.1, share_joint=0.12) for _ in range(2))
    card.run(3)
    assert card.is_joint
    first.share_joint = 0.3
    card.run(1)
    assert not card.is_joint


@pytest.mark.parametrize("steps", [1, 3])
def test_use_that_is_charged_in_large_steps_counts_in_full(card: Card, steps: int) -> None:
    """A decoder whose turns the arbiter does not ask back is charged every 50 ms."""
    first, second = (card.add(demand(50, "burst"), share_apart=0.0, share_joint=0.0) for _ in range(2))
    second.share_apart = second.share_joint = 0.04
    for number in range(1, int(20 * SECOND / STEP)):
        first.gpu_ns += int(0.94 * steps * STEP) if number % steps == 0 else 0
        card.step()
        assert not card.is_joint


def test_turns_that_fill_the_card_stay_apart(card: Card) -> None:
    for _ in range(2):
        card.add(demand(50, "burst"), share_apart=0.49, share_joint=0.45)
    card.run(20)
    assert not card.is_joint


def test_a_tenant_that_has_less_than_apart_and_than_its_guarantee_ends_joint_turns(card: Card) -> None:
    card.add(demand(40, "burst"), share_apart=0.4, share_joint=0.2)
    card.add(demand(policy="best-effort"), share_apart=0.2, share_joint=0.7)
    card.run(30)
    assert not card.is_joint


def test_a_tenant_that_is_served_less_than_its_guarantee_while_it_waits_ends_joint_turns(card: Card) -> None:
    """It asks for little, at random moments, so its share of the card's time is the same in both ways."""
    waiting = card.add(demand(40, "burst"), share_apart=0.15, share_joint=0.15, waits=0.16)
    card.add(demand(policy="best-effort"), share_apart=0.5, share_joint=0.75)
    card.run(1.3)
    assert card.is_joint
    waiting.waits = 0.5
    card.run(0.7)
    assert not card.is_joint


@pytest.mark.parametrize(
    ("neighbour", "share", "longest"),
    [
        (demand(50, "burst"), 0.83, 0),
        (demand(policy="best-effort"), 0.83, 0),
        (demand(policy="best-effort"), 0.6, 200 * MS),
    ],
)
def test_requests_that_would_wait_for_time_slices_are_kept_from_it(
    card: Card, neighbour: Demand, share: float, longest: int
) -> None:
    """Requests of 0.9 ms each 10 ms take 1.3 ms apart, and 2.5 ms in time slices."""
    requests = card.add(demand(50, "burst"), share_apart=0.09, share_joint=0.09, waits=0.13)
    card.add(neighbour, share_apart=share, share_joint=share)
    joint_steps = 0
    for _ in range(int(10 * SECOND / STEP)):
        requests.waits = 0.25 if card.is_joint else 0.13
        card.step()
        joint_steps += card.is_joint
    assert joint_steps * STEP <= longest
    assert bool(joint_steps) == bool(longest)


def test_in_the_first_moments_of_a_trial_nobody_is_ahead(card: Card) -> None:
    """Each of ten small programs has a turn in which it uses more than its guarantee, and others wait."""
    for _ in range(10):
        card.add(demand(10, "burst"), share_apart=0.05, share_joint=0.05, waits=0.4)
    while not card.is_joint:
        card.step()
    for program in card.programs:
        program.share_joint, program.waits = 0.3, 0.7
        card.step()
        program.share_joint, program.waits = 0.09, 0.9
    card.run(1)
    assert card.is_joint


@pytest.mark.parametrize(("of_neighbour", "stays"), [(0.35, True), (0.7, False)])
def test_one_that_waits_longer_ends_joint_turns_beside_one_that_has_more_than_its_guarantee(
    card: Card, of_neighbour: float, *, stays: bool
) -> None:
    """Of four programs that wanted the card all the time, turns apart served one less. Jointly it had as much as the
    others, which waited longer than before, so turns went apart again."""
    waiting = card.add(demand(40, "burst"), share_apart=0.2, share_joint=0.22, waits=0.2)
    card.add(demand(40, "burst"), share_apart=0.1, share_joint=of_neighbour)
    card.run(1.9)
    assert card.is_joint
    waiting.waits = 0.4
    states = []
    for _ in range(20):
        card.run(0.2)
        states.append(card.is_joint)
    assert all(states) == stays


def test_a_share_of_the_card_beyond_the_guarantee_is_not_protected(card: Card) -> None:
    card.add(demand(20, "burst"), share_apart=0.5, share_joint=0.3)
    card.add(demand(20, "burst"), share_apart=0.2, share_joint=0.6)
    card.run(2)
    assert card.is_joint


def test_when_joint_turns_end_all_are_taken_back_and_one_client_has_the_card(card: Card) -> None:
    first, second = (card.add(demand(30, "burst")) for _ in range(2))
    card.run(2)
    numbers = {card.page(first).turn, card.page(second).turn}
    newcomer = card.add(demand(30, "burst"))
    card.want(newcomer)
    assert not card.is_joint
    card.world.library.schedule_run(card.world.schedule, U64(card.world.now))
    assert card.page(first).turn == card.page(second).turn == 0
    assert card.page(newcomer).turn not in {0, *numbers}
    assert card.page(newcomer).budget_ns != ANY or card.page(newcomer).joint == 0


def test_a_tenant_that_does_nothing_loses_its_joint_turn_and_has_to_ask_again(card: Card) -> None:
    resting, *others = (card.add(demand(20, "burst"), share_joint=0.25) for _ in range(3))
    card.run(2)
    assert card.page(resting).turn
    card.run(2.2, others)
    assert card.is_joint
    assert not card.page(resting).turn
    card.want(resting)
    assert not card.is_joint


def test_joint_turns_end_when_one_tenant_is_left(card: Card) -> None:
    first, second = (card.add(demand(30, "burst")) for _ in range(2))
    card.run(2)
    card.run(2.2, [first])
    assert not card.is_joint
    assert not card.page(first).contended or not card.page(second).turn


def test_a_client_that_leaves_ends_nothing(card: Card) -> None:
    programs = [card.add(demand(20, "burst"), share_joint=0.25) for _ in range(3)]
    card.run(2)
    card.world.library.schedule_leave(card.world.schedule, programs[0].client, U64(card.world.now))
    card.programs.remove(programs[0])
    card.run(1)
    assert card.is_joint
    assert all(card.page(program).turn for program in card.programs)


def test_another_demand_is_measured_anew(card: Card) -> None:
    program = card.add(demand(30, "burst"))
    card.add(demand(30, "burst"))
    card.run(2)
    wanted = demand(30, "fixed")
    card.world.library.schedule_set_demand(
        card.world.schedule, program.tenant, ctypes.byref(wanted), U64(card.world.now)
    )
    assert not card.is_joint
    card.run(5)
    assert not card.is_joint


def test_a_tenant_that_says_it_used_nothing_has_no_advantage_afterwards(card: Card) -> None:
    """Time in joint turns is charged to no tenant, so what a container writes into its region does not matter."""
    honest = card.add(demand(30, "burst"))
    liar = card.add(demand(30, "burst"), share_joint=0.0, share_apart=0.0)
    card.run(30)
    held = card.world.library.schedule_held_ns
    before = [held(card.world.schedule, program.tenant) for program in (honest, liar)]
    card.add(demand(20, "fixed"))
    card.run(4)
    after = [held(card.world.schedule, program.tenant) for program in (honest, liar)]
    gained = [late - early for early, late in zip(before, after, strict=True)]
    assert abs(gained[0] - gained[1]) < 0.1 * 4 * SECOND
