"""When jobs have their turns, beside a naive twin: 1,000 random sets of jobs over 2 to 8 cards, in virtual time.

Whatever overlapping sets of cards the jobs have: each runs on all of its cards at the same moment, no two run on one
card, and each that waits runs within a bound. A planted schedule that takes card after card, and keeps what it has, is
found.
"""

import ctypes
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import pytest

from tests.arbiter.simulation import MS, START, U64, US

IDLE, CALLED, RUNS, ENDS = range(4)
MISALIGNED_WAIT, STARVED = 20 * MS, 300 * MS
BUDGET, DRAIN_MAX, TICK = 16 * MS, 35 * MS, MS
SINGLE_MAX: Final = BUDGET + 5 * MS  # of a turn of a tenant that uses one card, once it is asked back


class View(ctypes.Structure):
    _fields_ = (
        ("cards", ctypes.c_uint64),
        ("wants_since", ctypes.c_uint64),
        ("rank", ctypes.c_uint32),
        ("priority", ctypes.c_uint32),
        ("is_first", ctypes.c_bool),
        ("is_due", ctypes.c_bool),
        ("is_behind_job", ctypes.c_bool),
        ("is_free", ctypes.c_bool),
        ("holds", ctypes.c_bool),
        ("is_wanted_back", ctypes.c_bool),
    )


class Job(ctypes.Structure):
    _fields_ = (
        ("view", View),
        ("state", ctypes.c_int),
        ("is_considered", ctypes.c_bool),
    )


def waited(view: View, ns: int, now: int) -> bool:
    return bool(view.wants_since) and now - view.wants_since >= ns


def advanced(view: View, state: int) -> int:
    """The state after one of a job that does not wait to be called."""
    if state == CALLED:
        return IDLE if not view.wants_since else RUNS if view.is_free else CALLED
    if state == RUNS:
        return IDLE if not view.holds else ENDS if view.is_wanted_back else RUNS
    return ENDS if state == ENDS and view.holds else IDLE


def has_waited_enough(view: View, now: int) -> bool:
    return view.is_first and waited(view, MISALIGNED_WAIT, now)


def is_ready(view: View, now: int) -> bool:
    may_interrupt = not view.is_behind_job and (has_waited_enough(view, now) or waited(view, STARVED, now))
    return view.is_due or may_interrupt


def order(view: View, now: int) -> tuple[int, int, int, int]:
    is_starved = waited(view, STARVED, now)
    return (0, 0, 0, view.wants_since) if is_starved else (1, view.rank, -view.priority, view.wants_since)


def called(jobs: list[tuple[View, int]], now: int) -> list[int]:
    """The jobs that are called in a step in which nothing else happens."""
    waiting = [number for number, (view, state) in enumerate(jobs) if state == IDLE and view.wants_since]
    taken = [view.cards for view, state in jobs if state == CALLED]
    found = []
    for number in sorted(waiting, key=lambda number: order(jobs[number][0], now)):
        view = jobs[number][0]
        is_called = is_ready(view, now) and not any(cards & view.cards for cards in taken)
        if is_called or has_waited_enough(view, now):
            taken.append(view.cards)
        if is_called:
            found.append(number)
    return found


def naive_step(jobs: list[tuple[View, int]], now: int) -> list[int]:
    """The states after a step, by the rules of `co_schedule.h`, of each job's view and state."""
    before = [state for _, state in jobs]
    after = [advanced(view, state) for view, state in jobs]
    if after != before:
        return after
    for number in called(jobs, now):
        after[number] = CALLED
        for other, (view, state) in enumerate(jobs):
            if state == RUNS and view.cards & jobs[number][0].cards:
                after[other] = ENDS
    return after


@dataclass
class Card:
    """Who has the card's turn: a job's number, -1 a tenant of this card alone, None nobody."""

    holder: int | None = None
    ends_at: int = 0  # a job's part, once it is asked back; a single tenant's turn
    began_at: int = 0
    has_single: bool = False  # a tenant of the card alone always wants it


@dataclass
class Node:
    """Cards, jobs on sets of them, and what each card's schedule would say."""

    random: random.Random
    cards: list[Card]
    sets: list[list[int]]
    now: int = START
    wants_since: list[int] = field(default_factory=list)
    longest: int = 0
    turns: list[int] = field(default_factory=list)

    def view(self, number: int, state: int, ranks: list[int]) -> View:
        cards = [self.cards[card] for card in self.sets[number]]
        held = [card for card in cards if card.holder not in (None, number)]
        due = all(card.ends_at or self.now >= card.began_at + BUDGET for card in held)
        singles_wait = any(card.has_single for card in cards)
        over = state == RUNS and singles_wait and self.now >= max(card.began_at for card in cards) + BUDGET
        return View(
            cards=sum(1 << card for card in self.sets[number]),
            wants_since=self.wants_since[number],
            rank=ranks[number],
            is_first=self.is_first(number, ranks),
            is_due=due and self.is_first(number, ranks),
            is_behind_job=any(self.is_job_to_go_on(card) for card in held),
            is_free=all(card.holder is None for card in cards),
            holds=any(card.holder == number for card in cards),
            is_wanted_back=over,
        )

    def is_first(self, number: int, ranks: list[int]) -> bool:
        holders = {self.cards[card].holder for card in self.sets[number]}
        return all(ranks[number] <= ranks[holder] for holder in holders if holder is not None and holder >= 0)

    def is_job_to_go_on(self, card: Card) -> bool:
        return card.holder is not None and card.holder >= 0 and not card.ends_at and self.now < card.began_at + BUDGET

    def enter(self, number: int, state: int) -> None:
        for card in (self.cards[card] for card in self.sets[number]):
            if state == CALLED and card.holder == -1:
                card.ends_at = min(card.ends_at or self.now + SINGLE_MAX, self.now + SINGLE_MAX)
            if state == RUNS:
                assert card.holder is None, "two turns on one card"
                card.holder, card.began_at, card.ends_at = number, self.now, 0
            if state == ENDS and card.holder == number:
                card.ends_at = self.now + self.random.randrange(0, DRAIN_MAX)
        if state == RUNS:
            self.longest = max(self.longest, self.now - self.wants_since[number])
            self.wants_since[number] = 0
            self.turns[number] += 1

    def pass_time(self, states: list[int]) -> None:
        self.now += TICK
        called = {card for number, state in enumerate(states) if state == CALLED for card in self.sets[number]}
        for number, card in enumerate(self.cards):
            if card.holder is not None and card.ends_at and self.now >= card.ends_at:
                card.holder, card.ends_at = None, 0
            if card.holder is None and card.has_single and number not in called:
                card.holder, card.began_at, card.ends_at = -1, self.now, 0
            if card.holder == -1 and not card.ends_at and self.random.random() < 0.02:
                card.ends_at = self.now
        for number, state in enumerate(states):
            if state == IDLE and not self.wants_since[number]:
                self.wants_since[number] = self.now


def make_node(seed: int) -> Node:
    rng = random.Random(seed)
    cards = [Card(has_single=rng.random() < 0.4) for _ in range(rng.randint(2, 8))]
    jobs = rng.randint(1, 6)
    sets = [rng.sample(range(len(cards)), rng.randint(2, len(cards))) for _ in range(jobs)]
    return Node(rng, cards, sets, wants_since=[0] * jobs, turns=[0] * jobs)


def run(node: Node, step: Callable[[list[View], list[int], int], list[int]], ns: int, ranks: list[int]) -> None:
    states = [IDLE] * len(node.sets)
    end = node.now + ns
    while node.now < end:
        node.pass_time(states)
        for _ in range(4):
            views = [node.view(number, state, ranks) for number, state in enumerate(states)]
            after = step(views, states, node.now)
            changed = [number for number in range(len(states)) if after[number] != states[number]]
            for number in sorted(changed, key=lambda number: after[number] != ENDS):
                node.enter(number, after[number])
            if not changed:
                break
            states = after


def real_step(library: ctypes.CDLL) -> Callable[[list[View], list[int], int], list[int]]:
    """A step of the module, which is compared with the twin's."""
    library.co_schedule_step.restype = ctypes.c_bool

    def step(views: list[View], states: list[int], now: int) -> list[int]:
        jobs = (Job * len(views))(*(Job(view, state) for view, state in zip(views, states, strict=True)))
        changed = library.co_schedule_step(jobs, len(jobs), ctypes.c_uint64(now))
        after = [job.state for job in jobs]
        assert after == naive_step(list(zip(views, states, strict=True)), now)
        assert changed == (after != states)
        return after

    return step


def longest_wait(node: Node) -> int:
    """Before a job's turn: a turn and a handover of each job, one more for the job that runs, and 20 ms."""
    return (len(node.sets) + 1) * (BUDGET + DRAIN_MAX + SINGLE_MAX) + MISALIGNED_WAIT


@pytest.mark.heavy
@pytest.mark.parametrize("block", [0, *(pytest.param(block, marks=pytest.mark.slow) for block in range(1, 10))])
def test_jobs_on_random_sets_of_cards_run_together_and_within_a_bound(pure: ctypes.CDLL, block: int) -> None:
    step = real_step(pure)
    for seed in range(100 * block, 100 * block + 100):
        node = make_node(seed)
        run(node, step, 800 * MS, [0] * len(node.sets))
        waiting = [node.now - since for since in node.wants_since if since]
        assert max([node.longest, *waiting]) <= longest_wait(node), seed
        assert min(node.turns) > 0, seed


def take_card_after_card(views: list[View], states: list[int], now: int) -> list[int]:
    """A planted fault: a job that waits is called whatever is called on its cards, and keeps what it has."""
    after = naive_step(list(zip(views, states, strict=True)), now)
    return [
        CALLED if state == IDLE and view.wants_since and now >= 0 else new
        for view, state, new in zip(views, states, after, strict=True)
    ]


@pytest.mark.heavy
def test_a_planted_hold_and_wait_is_found() -> None:
    """Jobs that are called on common cards begin on them at the same moment, or never."""
    found = 0
    for seed in range(100):
        node = make_node(seed)
        try:
            run(node, take_card_after_card, 1500 * MS, [0] * len(node.sets))
        except AssertionError:
            found += 1
    assert found > 50


def test_jobs_on_three_overlapping_pairs_have_equal_numbers_of_turns(pure: ctypes.CDLL) -> None:
    node = make_node(1)
    node.cards, node.sets = [Card() for _ in range(3)], [[0, 1], [1, 2], [0, 2]]
    node.wants_since, node.turns = [0] * 3, [0] * 3
    run(node, real_step(pure), 5000 * MS, [0] * 3)
    assert max(node.turns) - min(node.turns) <= 1


def test_a_job_of_a_later_class_runs_when_it_has_starved(pure: ctypes.CDLL) -> None:
    node = make_node(1)
    node.cards, node.sets = [Card() for _ in range(2)], [[0, 1], [0, 1], [0, 1]]
    node.wants_since, node.turns = [0] * 3, [0] * 3
    run(node, real_step(pure), 5000 * MS, [0, 0, 3])
    assert node.turns[2] >= 10
    assert node.turns[0] > 4 * node.turns[2]


@pytest.mark.parametrize(
    ("handover", "budget", "turn"), [(1000, 4, 4), (2000, 4, 6), (1400, 4, 4.2), (3000, 16, 16), (9000, 4, 16)]
)
def test_a_job_s_turn_is_as_long_as_three_handovers_of_a_busy_machine(
    pure: ctypes.CDLL, handover: int, budget: int, turn: float
) -> None:
    assert pure.turn_allowance_job(U64(handover * US), U64(budget * MS)) == turn * MS
