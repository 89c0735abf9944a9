"""Turns of the real arbiter, as its clients get them."""

import time

import pytest

from limiter.arbitration import ACCEPTED, ANY
from tests.arbiter.client import Client
from tests.arbiter.conftest import Node, limits_for, until

pytestmark = pytest.mark.slow

MS = 1_000_000
HOLD_NS = 60_000 * MS  # how long a container's work goes on: a turn whose card is idle is revoked after 1 ms
HANDOVER_NS = MS // 5
DRAIN_NS = 40 * MS
DRAIN_ROUNDS = 5  # which together exceed their turns by less than the overrun budget, 250 ms


def now() -> int:
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def until_yield_asked(client: Client, turn: int) -> None:
    until(lambda: client.yields == turn)


def until_turn_over(client: Client, turn: int) -> None:
    until(lambda: client.turn != turn)


def test_a_client_alone_gets_an_unlimited_turn(node: Node) -> None:
    client = node.add().connect()
    assert client.result == ACCEPTED
    assert (client.turn, client.contended, client.fallback_percent) == (0, 0, 100)
    client.want()
    assert client.wait() > 0
    assert (client.contended, client.budget) == (0, ANY)


def test_two_containers_alternate(node: Node) -> None:
    one, other = (node.add(limits_for(50, "burst")) for _ in range(2))
    first, second = one.connect(), other.connect()
    for container in (one, other):
        container.set_busy_until(now() + HOLD_NS)
    first.want()
    first.wait()
    second.want()
    second.wait()
    until(lambda: first.contended and second.contended)
    order = []
    for _ in range(4):
        for client, waiter in ((first, second), (second, first)):
            client.want()
            turn = client.wait()
            order.append(turn)
            waiter.want()
            until_yield_asked(client, turn)
            client.done(turn)
            until_turn_over(client, turn)
    assert order == sorted(set(order))


def test_the_next_turn_begins_when_the_work_of_the_last_has_drained(node: Node) -> None:
    """The lower bounds hold in every round; the upper bound in the best, as the machine may delay the messages."""
    containers = [node.add(limits_for(50, "burst")) for _ in range(2)]
    holder, waiter = (container.connect() for container in containers)
    for container in containers:
        container.set_busy_until(now() + HOLD_NS)
    for client in (holder, waiter):
        client.want()
        client.wait()
    holder.want()
    until(lambda: holder.contended and waiter.contended)
    delays = [announce_drain(holder, waiter) for _ in range(DRAIN_ROUNDS)]
    assert DRAIN_NS + HANDOVER_NS <= min(delays) <= DRAIN_NS + 5 * MS


def announce_drain(holder: Client, waiter: Client) -> int:
    """The holder's turn ends with work that drains in DRAIN_NS; returns when the waiter's first kernel may begin."""
    waiter.done()
    turn = holder.wait()
    ended_at = now()
    holder.done(turn, DRAIN_NS)
    waiter.want()
    waiter.wait()
    assert now() - ended_at >= DRAIN_NS - 5 * MS
    assert holder.turn == 0
    delay = waiter.free_at - ended_at
    holder.want()
    return delay


def test_changed_limits_hold_within_a_second(node: Node) -> None:
    container = node.add(limits_for(30))
    one, other = container.connect(), node.add(limits_for(60)).connect()
    for client in (one, other):
        client.want()
        client.wait()
        client.done()
    until(lambda: (one.fallback_percent, other.fallback_percent) == (30, 60))
    container.limit(limits_for(20, "burst"))
    until(lambda: one.fallback_percent == 20, 2)
    container.limit(limits_for(0, "best-effort"))
    until(lambda: one.fallback_percent == 40, 2)


def test_300_containers_all_get_a_turn(node: Node) -> None:
    containers = [node.add() for _ in range(300)]
    waiting = {container.connect() for container in containers}
    for container in containers:
        container.set_busy_until(now() + 60_000 * MS)  # no container counts as idle
    end = time.monotonic() + 30
    while waiting:
        assert time.monotonic() < end
        for client in waiting:
            client.want()
        requested_at = time.monotonic()
        while waiting and time.monotonic() < requested_at + 1:
            for client in [waiter for waiter in waiting if waiter.turn]:
                client.done()
                waiting.discard(client)
