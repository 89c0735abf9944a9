"""The time line of a card, in virtual time: the C code compared with a naive implementation."""

import ctypes
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.simgpu.timeline.card_timeline import HANDOVER, MS, SLICE, START, SWITCH, US, CardTimeline

pytestmark = pytest.mark.slow

GRACE = 20 * US
UNIT = 10 * US


class Card(CardTimeline):
    """A card at time START without any work so far."""

    def until(self, now: int) -> None:
        self._call("advance", now)

    def open(self, leader: int = 0) -> int:
        return self._call("open", 1, leader)

    def wait(self, queue: int, other: int, position: int) -> int:
        return self._call("wait", queue, other, position)

    def mark(self, queue: int, after: int) -> int:
        return self._call("mark", queue, after)


@pytest.fixture
def card(timeline: ctypes.CDLL) -> Card:
    return Card(timeline)


def test_alone_work_begins_at_once_and_is_never_interrupted(card: Card) -> None:
    queue = card.open()
    first, last = card.submit(queue, 3 * MS), card.submit(queue, 7 * MS)
    card.until(START + 9 * MS)
    assert (card.passed(queue, first), card.passed(queue, last)) == (3 * MS, 0)
    assert card.earliest(queue, last) == 10 * MS
    card.until(START + 50 * MS)
    later = card.submit(queue, MS)
    card.until(START + 60 * MS)
    assert (card.passed(queue, last), card.passed(queue, later)) == (10 * MS, 51 * MS)


def test_two_compute_bound_contexts_do_79_percent_of_what_one_does(card: Card) -> None:
    queues = card.open(), card.open()
    for queue in queues:
        card.submit(queue, 10_000 * MS)
    card.until(START + 1000 * MS)
    done = [sum(card.passed(queue, ms * MS) > 0 for ms in range(1, 1000)) for queue in queues]
    assert abs(done[0] - done[1]) <= 2
    assert 780 <= sum(done) <= 800


@pytest.mark.parametrize(("turn", "percent"), [(5, 96), (10, 98), (20, 99)])
def test_a_context_whose_work_runs_out_hands_over_for_less(card: Card, turn: int, percent: int) -> None:
    queues, ends = (card.open(), card.open()), []
    for number in range(40):
        card.until(START + max(0, number * (turn * MS + HANDOVER) - HANDOVER - 300 * US))  # just before its turn
        ends.append(card.submit(queues[number % 2], turn * MS))
    card.until(START + 10_000 * MS)
    passed = card.passed(queues[1], ends[39])
    assert round(100 * 40 * turn * MS / passed) == percent


def test_a_newcomer_waits_for_the_end_of_a_slice_and_the_switch(card: Card) -> None:
    burner, other = card.open(), card.open()
    card.submit(burner, 100 * MS)
    card.until(START + 3 * MS)
    position = card.submit(other, MS)
    begun = 2 * SLICE + SWITCH
    assert card.earliest(other, position) <= begun + MS
    card.until(START + 50 * MS)
    assert card.passed(other, position) == begun + MS
    assert card.passed(burner, 2 * SLICE + MS) == begun + MS + HANDOVER + MS


def test_events_around_a_slice_of_work_read_its_true_time_among_neighbours(card: Card) -> None:
    queue, *others = (card.open() for _ in range(4))
    for other in others:
        card.submit(other, 1000 * MS)
    card.until(START + MS)
    begin = card.mark(queue, 0)
    end = card.mark(queue, card.submit(queue, 2 * MS - 10))
    wide = card.mark(queue, card.submit(queue, 2 * MS))
    card.until(START + 200 * MS)
    began, ended, much_later = (card.passed(queue, position) for position in (begin, end, wide))
    assert began > 6 * MS
    assert ended - began == 2 * MS - 10
    assert much_later - ended > 6 * MS


def test_work_that_ends_within_the_grace_time_is_not_interrupted(card: Card) -> None:
    queue, other = card.open(), card.open()
    ends = [card.submit(queue, ns) for ns in (SLICE, GRACE)]
    card.submit(other, 100 * MS)
    card.until(START + SLICE + 1)
    card.until(START + 200 * MS)
    assert [card.passed(queue, end) for end in ends] == [SLICE, SLICE + GRACE]
    card.submit(other, 100 * MS)
    card.until(START + 201 * MS)
    more = card.submit(queue, SLICE + GRACE + 1)
    card.until(START + 400 * MS)
    assert card.passed(queue, more) > 206 * MS


def test_an_event_passes_behind_its_own_stream_alone(card: Card) -> None:
    queue = card.open()
    first = card.submit(queue, 4 * MS)
    card.submit(queue, 40 * MS)
    idle, busy = card.mark(queue, 0), card.mark(queue, first)
    card.until(START + 10 * MS)
    assert (card.passed(queue, idle), card.passed(queue, busy)) == (1, 4 * MS)
    assert card.passed(queue, card.mark(queue, 0)) == 0
    card.until(START + 10 * MS + 1)
    assert card.passed(queue, 10 * MS + 1) == 10 * MS + 1


def test_work_of_a_context_that_ends_is_out_of_the_way(card: Card) -> None:
    gone, other = card.open(), card.open()
    card.submit(gone, 1000 * MS)
    position = card.submit(other, MS)
    card.until(START + MS)
    card.close(gone)
    assert card.open() != gone  # what is on the card is not its context
    card.until(START + 10 * MS)
    assert card.passed(other, position) == MS + HANDOVER + MS
    assert card.open() == gone


def test_times_of_long_ago_are_the_oldest_known(card: Card) -> None:
    queue = card.open()
    ends = []
    for number in range(300):
        card.until(START + number * MS)
        ends.append(card.submit(queue, 1000))
    card.until(START + 300 * MS)
    passed = [card.passed(queue, end) for end in ends]
    assert passed[-128:] == [number * MS + 1000 for number in range(172, 300)]
    assert set(passed[:172]) == {172 * MS}


def test_queues_of_one_context_share_its_slices_without_a_switch(card: Card) -> None:
    first = card.open()
    second, other = card.open(first), card.open()
    ends = [card.submit(queue, 100 * MS) for queue in (first, second)]
    card.until(START + 200 * MS)
    assert sorted(card.passed(queue, end) for queue, end in zip((first, second), ends, strict=True)) == [
        198 * MS,
        200 * MS,
    ]
    for queue in (first, second, other):
        card.submit(queue, 1000 * MS)
    card.until(START + 1200 * MS)
    done = {queue: sum(card.passed(queue, ms * MS) > 0 for ms in range(1, 1100)) for queue in (first, second, other)}
    assert abs(done[first] - done[second]) <= 4
    assert abs(done[first] + done[second] - 200 - done[other]) <= 8


def test_a_barrier_opens_at_the_moment_its_position_passes(card: Card) -> None:
    queue = card.open()
    behind = card.open(queue)
    middle = card.submit(queue, 3 * MS)
    card.submit(queue, 500 * US)
    barrier = card.wait(behind, queue, middle)
    end = card.submit(behind, MS)
    assert card.earliest(behind, end) > 4 * MS
    card.until(START + 100 * MS)
    assert card.passed(behind, end) == card.passed(behind, barrier) + MS
    assert 3 * MS < card.passed(behind, barrier) <= 3 * MS + 500 * US + 1
    assert card.wait(behind, queue, middle) == end  # it has passed


def test_a_barrier_before_work_of_another_context_costs_a_handover(card: Card) -> None:
    queue, other = card.open(), card.open()
    end = card.submit(queue, 3 * MS)
    barrier = card.wait(other, queue, end)
    card.until(START + 100 * MS)
    assert card.passed(other, barrier) == 3 * MS + HANDOVER + 1


def test_a_queue_that_is_closed_holds_back_no_other(card: Card) -> None:
    queue = card.open()
    other = card.open(queue)
    barrier = card.wait(other, queue, card.submit(queue, 1000 * MS))
    card.until(START + MS)
    card.close(queue)
    card.until(START + 2 * MS)
    assert card.passed(other, barrier) == MS + 1


def test_a_queue_takes_as_many_barriers_as_it_has_room_for(card: Card) -> None:
    queue = card.open()
    other = card.open(queue)
    ends = [card.submit(queue, MS) for _ in range(65)]
    barriers = [card.wait(other, queue, end) for end in ends]
    assert [barrier > 0 for barrier in barriers] == [True] * 64 + [False]
    card.until(START + MS)
    assert card.wait(other, queue, ends[-1]) > 0


WORKS = st.lists(
    st.tuples(st.integers(0, 600), st.integers(0, 4), st.integers(1, 300), st.none() | st.integers(0, 4)),
    min_size=1,
    max_size=14,
).map(lambda works: sorted(works, key=lambda work: work[0]))


def _passed(timeline: ctypes.CDLL, works: list[tuple[int, int, int, int | None]], looks: list[int]) -> list[int]:
    """When each work is done. It waits first for what another queue was given so far."""
    card = Card(timeline)
    first, third = card.open(), card.open()
    queues = [first, card.open(first), third, card.open(third), card.open(first)]
    ends: list[tuple[int, int]] = []
    given: dict[int, int] = {}
    for unit in range(700):
        arriving = [work for work in works if work[0] == unit]
        if arriving or unit in looks:
            card.until(START + unit * UNIT)
            for queue, end in ends:
                assert card.passed(queue, end) or card.earliest(queue, end) > unit * UNIT
        for _, which, size, awaited in arriving:
            other = None if awaited is None else queues[awaited]
            if other is not None and other != queues[which]:
                card.wait(queues[which], other, given.get(other, 0))
            given[queues[which]] = card.submit(queues[which], size * UNIT)
            ends.append((queues[which], given[queues[which]]))
    bounds = {(queue, end): card.earliest(queue, end) for queue, end in ends if not card.passed(queue, end)}
    card.until(START + 10_000_000 * UNIT)
    assert all(card.passed(queue, end) >= bound for (queue, end), bound in bounds.items())
    return [card.passed(queue, end) for queue, end in ends]


@given(WORKS, st.lists(st.integers(0, 699), max_size=6))
def test_barriers_open_whenever_the_card_is_advanced(
    timeline: ctypes.CDLL, works: list[tuple[int, int, int, int | None]], looks: list[int]
) -> None:
    passed = _passed(timeline, works, [])
    assert all(passed)
    assert _passed(timeline, works, looks) == passed


@dataclass
class Naive:
    """The naive implementation: it advances by one unit of time, of which all times are multiples."""

    unit: int
    work: dict[int, int] = field(default_factory=dict)
    done: dict[int, int] = field(default_factory=dict)
    passed: dict[tuple[int, int], int] = field(default_factory=dict)
    current: int = 0
    slice: int = 0
    switching: int = 0

    def step(self, now: int) -> None:
        stays = self.slice > 0 and self.work.get(self.current, 0) > 0
        others = [queue for queue in sorted(self.work) if self.work[queue] > 0]
        if not stays:
            if not others:
                return
            self._put_on(next((queue for queue in others if queue > self.current), others[0]))
        if self.switching:
            self.switching -= self.unit
            return
        current = self.current
        if others != [current] and self.slice < self.work[current] <= self.slice + GRACE:
            self.slice = self.work[current]
        self.work[current] -= self.unit
        self.done[current] = self.done.get(current, 0) + self.unit
        self.passed[current, self.done[current]] = now + self.unit
        self.slice -= self.unit
        if self.slice == 0 and others == [current]:
            self.slice = SLICE
        self.slice = self.slice if self.work[current] else 0

    def _put_on(self, queue: int) -> None:
        if queue != self.current and self.current:
            self.switching = SWITCH if self.work.get(self.current, 0) else HANDOVER
        self.current, self.slice = queue, SLICE


SUBMISSIONS = st.lists(
    st.tuples(st.integers(0, 600), st.integers(0, 3), st.integers(1, 900)), min_size=1, max_size=12
).map(sorted)


@given(SUBMISSIONS, st.lists(st.integers(0, 4000), max_size=6))
def test_times_do_not_depend_on_how_often_the_card_is_advanced(
    timeline: ctypes.CDLL, submissions: list[tuple[int, int, int]], looks: list[int]
) -> None:
    card, naive = Card(timeline), Naive(UNIT)
    queues = [card.open() for _ in range(4)]
    ends: dict[tuple[int, int], None] = {}
    for unit in range(sum(size for *_, size in submissions) * 2 + 2000):
        arriving = [submission for submission in submissions if submission[0] == unit]
        if arriving or unit in looks:
            card.until(START + unit * UNIT)
        for _, which, size in arriving:
            queue = queues[which]
            ends[queue, card.submit(queue, size * UNIT)] = None
            naive.work[queue] = naive.work.get(queue, 0) + size * UNIT
        for queue, end in ends if unit in looks else ():
            passed = card.passed(queue, end)
            assert passed == naive.passed.get((queue, end), 0)
            assert passed or card.earliest(queue, end) > unit * UNIT
        naive.step(unit * UNIT)
    card.until(START + 10_000_000 * UNIT)
    assert {end: card.passed(*end) for end in ends} == {end: naive.passed[end] for end in ends}
