"""The clients of an MPS server on a card's time line, in virtual time: they work at the same moment."""

import ctypes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.simgpu.timeline.card_timeline import HANDOVER, MS, SLICE, START, US, CardTimeline

pytestmark = pytest.mark.slow


class Card(CardTimeline):
    """A card at time START with a server and no work."""

    def __init__(self, timeline: ctypes.CDLL) -> None:
        super().__init__(timeline)
        self.server = self._call("open_server", 1)

    def until(self, now: int) -> None:
        self._call("advance", START + now)

    def outsider(self) -> int:
        """A context that is no client."""
        return self._call("open", 1, 0)

    def other_server(self) -> None:
        """From now on clients are those of another server."""
        self.server = self._call("open_server", 2)

    def client(self, fills: int = 100, cap: int = 100) -> int:
        queue = self._call("open", 1, 0)
        self._call("join", queue, self.server, cap)
        self._call("set_fill", queue, fills)
        return queue

    def channel(self, leader: int, fills: int) -> int:
        queue = self._call("open", 1, leader)
        self._call("set_fill", queue, fills)
        return queue


@pytest.fixture
def card(timeline: ctypes.CDLL) -> Card:
    return Card(timeline)


def ends(card: Card, *works: tuple[int, int]) -> list[int]:
    """When the work of each (queue, ns), submitted now, is done."""
    positions = [(queue, card.submit(queue, ns)) for queue, ns in works]
    card.until(1000 * MS)
    return [card.passed(queue, position) for queue, position in positions]


def test_small_kernels_of_clients_overlap(card: Card) -> None:
    four = [card.client(fills=25) for _ in range(4)]
    assert ends(card, *((queue, 5 * MS) for queue in four)) == [5 * MS] * 4


def test_clients_that_want_more_than_the_card_divide_it(card: Card) -> None:
    large, small = card.client(fills=100), card.client(fills=50)
    assert ends(card, (large, 10 * MS), (small, 10 * MS)) == [15 * MS, 15 * MS]


def test_work_that_remains_alone_has_the_card_again(card: Card) -> None:
    first, second = card.client(), card.client()
    assert ends(card, (first, MS), (second, 4 * MS)) == [2 * MS, 5 * MS]


@pytest.mark.parametrize(("fills", "cap", "took"), [(100, 25, 8 * MS), (50, 25, 4 * MS), (20, 25, 2 * MS)])
def test_a_cap_slows_what_would_fill_more(card: Card, fills: int, cap: int, took: int) -> None:
    assert ends(card, (card.client(fills, cap), 2 * MS)) == [took]


def test_a_cap_leaves_room_for_the_others(card: Card) -> None:
    trainer, small = card.client(fills=100, cap=50), card.client(fills=50)
    assert ends(card, (trainer, 10 * MS), (small, 10 * MS)) == [20 * MS, 10 * MS]


def test_a_server_has_the_time_slices_of_one_context(card: Card) -> None:
    clients, outsider = [card.client(fills=25) for _ in range(4)], card.outsider()
    for queue in (*clients, outsider):
        card.submit(queue, 10_000 * MS)
    card.until(1000 * MS)
    done = [sum(card.passed(queue, ms * MS) > 0 for ms in range(1, 600)) for queue in (*clients, outsider)]
    assert max(done) - min(done) <= 2
    assert 390 <= done[0] <= 400


def test_two_servers_take_time_slices(card: Card) -> None:
    ours = card.client()
    card.other_server()
    theirs = card.client()
    end, other = ends(card, (ours, SLICE), (theirs, SLICE))
    assert (end, other) == (SLICE, SLICE + HANDOVER + SLICE)


def test_the_streams_of_one_client_take_turns(card: Card) -> None:
    first, other = card.client(fills=50), card.client(fills=50)
    second = card.channel(first, fills=50)
    one, two, beside = ends(card, (first, 10 * MS), (second, 10 * MS), (other, 20 * MS))
    assert max(one, two) == 20 * MS
    assert min(one, two) >= 18 * MS - US
    assert beside == 20 * MS


def test_a_client_that_ends_is_out_of_the_way(card: Card) -> None:
    gone, stays = card.client(), card.client()
    card.submit(gone, 1000 * MS)
    position = card.submit(stays, 2 * MS)
    card.until(2 * MS)
    card.close(gone)
    card.until(100 * MS)
    assert card.passed(stays, position) == 3 * MS


def test_the_work_of_a_server_that_ends_is_discarded(card: Card) -> None:
    clients, outsider = [card.client() for _ in range(3)], card.outsider()
    for queue in clients:
        card.submit(queue, 1000 * MS)
    card.until(MS)
    card.close(card.server)
    assert ends(card, (outsider, MS)) == [MS + HANDOVER + MS]
    fresh = card.outsider()  # on a place that was a client's, or the server's
    position = card.submit(fresh, MS)
    card.until(2000 * MS)
    assert card.passed(fresh, position) == 1000 * MS + HANDOVER + MS


CLIENTS = st.lists(st.tuples(st.integers(1, 100), st.integers(1, 100)), min_size=1, max_size=6)
WORKS = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 5), st.integers(1, 4000)), min_size=1, max_size=12)


def _passed(
    timeline: ctypes.CDLL, clients: list[tuple[int, int]], works: list[tuple[int, int, int]], looks: list[int]
) -> list[int]:
    """When each work is done; the card is advanced whenever work arrives, and at `looks`."""
    card = Card(timeline)
    queues, positions = [card.client(*client) for client in clients], list[tuple[int, int]]()
    for at in range(60):
        arriving = [work for work in works if work[0] == at]
        if arriving or at in looks:
            card.until(at * MS)
        for _, which, us in arriving:
            queue = queues[which % len(queues)]
            positions.append((queue, card.submit(queue, us * US)))
            assert card.earliest(*positions[-1]) >= at * MS
    bounds = [card.earliest(*position) for position in positions]
    card.until(100_000 * MS)
    passed = [card.passed(*position) for position in positions]
    assert all(time >= bound for time, bound in zip(passed, bounds, strict=True) if bound > 60 * MS)
    return passed


@given(CLIENTS, WORKS, st.lists(st.integers(0, 59), max_size=20))
def test_times_hardly_depend_on_how_often_the_card_is_advanced(
    timeline: ctypes.CDLL, clients: list[tuple[int, int]], works: list[tuple[int, int, int]], looks: list[int]
) -> None:
    """Within what whole ns of work and time leave: as many ns as a client's work can be stretched by."""
    works = sorted(works)
    often, seldom = _passed(timeline, clients, works, looks), _passed(timeline, clients, works, [])
    assert all(often)
    assert all(abs(one - two) <= 50 * US for one, two in zip(often, seldom, strict=True))


def _fluid(clients: list[tuple[int, int]], works: list[int]) -> list[float]:
    """The naive twin: when the clients' work is done that they get at time 0, in real numbers."""
    left, ended, now = dict(enumerate(map(float, works))), [0.0] * len(works), 0.0
    while left:
        uses = {which: min(clients[which]) for which in left}
        wanted = max(100, sum(uses.values()))
        speeds = {which: uses[which] / clients[which][0] * 100 / wanted for which in left}
        step = min(left[which] / speeds[which] for which in left)
        now += step
        for which in [*left]:
            left[which] -= step * speeds[which]
            if left[which] < 1e-6:
                ended[which] = now
                del left[which]
    return ended


@given(st.lists(st.tuples(st.integers(1, 100), st.integers(1, 100), st.integers(1, 5000)), min_size=1, max_size=48))
def test_times_are_those_of_a_fluid_that_the_clients_divide(
    timeline: ctypes.CDLL, each: list[tuple[int, int, int]]
) -> None:
    card, clients = Card(timeline), [(fills, cap) for fills, cap, _ in each]
    queues = [card.client(*client) for client in clients]
    positions = [card.submit(queue, us * US) for queue, (*_, us) in zip(queues, each, strict=True)]
    card.until(1_000_000 * MS)
    wanted = _fluid(clients, [us * US for *_, us in each])
    for queue, position, time in zip(queues, positions, wanted, strict=True):
        assert card.passed(queue, position) == pytest.approx(time, rel=0.005, abs=US)
