"""The arbiter's turns, as a process gets them."""

import time

import pytest

from limiter.arbitration import ACCEPTED, ANY
from tests.arbiter.conftest import Node, asked, until

pytestmark = pytest.mark.slow

MS = 1_000_000


def now() -> int:
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def test_who_is_alone_is_told_to_go_on(node: Node) -> None:
    client = node.add().connect()
    assert client.result == ACCEPTED
    assert (client.turn, client.contended, client.fallback) == (0, 0, 100)
    client.want()
    assert client.wait() > 0
    assert (client.contended, client.budget) == (0, ANY)


def test_two_containers_have_the_card_in_turn(node: Node) -> None:
    one, other = (node.add(asked(50, "burst")) for _ in range(2))
    first, second = one.connect(), other.connect()
    first.want()
    first.wait()
    second.want()
    second.wait()
    until(lambda: first.contended and second.contended)
    order = []
    for _ in range(4):
        for container, client, rest in ((one, first, second), (other, second, first)):
            client.want()
            turn = client.wait()
            container.lease(now() + 100 * MS)
            order.append(turn)
            rest.want()
            until(lambda c=client, t=turn: c.yields == t)
            client.done(turn)
            until(lambda c=client, t=turn: c.turn != t)
    assert order == sorted(set(order))


def test_who_is_done_lets_the_next_begin_when_the_rest_has_passed(node: Node) -> None:
    one, other = (node.add(asked(50, "burst")).connect() for _ in range(2))
    one.want()
    one.wait()
    other.want()
    other.wait()
    one.want()  # both use the card now
    until(lambda: one.contended and other.contended)
    other.done()
    turn = one.wait()
    said = now()
    one.done(turn, 60 * MS)
    other.want()
    other.wait()
    assert now() - said >= 55 * MS
    assert 58 * MS <= other.free_at - said <= 65 * MS  # with a handover
    assert one.turn == 0


def test_limits_that_change_hold_within_a_second(node: Node) -> None:
    container = node.add(asked(30))
    one, other = container.connect(), node.add(asked(60)).connect()
    for client in (one, other):
        client.want()
        client.wait()
        client.done()
    until(lambda: (one.fallback, other.fallback) == (30, 60))
    container.limit(asked(20, "burst"))
    until(lambda: one.fallback == 20, 2)
    container.limit(asked(0, "best-effort"))
    until(lambda: one.fallback == 40, 2)


def test_300_containers_have_the_card_in_turn(node: Node) -> None:
    containers = [node.add() for _ in range(300)]
    waiting = {container.connect() for container in containers}
    for container in containers:
        container.lease(now() + 60_000 * MS)  # none is idle
    end = time.monotonic() + 30
    while waiting:
        assert time.monotonic() < end
        for client in waiting:
            client.want()
        asked_at = time.monotonic()
        while waiting and time.monotonic() < asked_at + 1:
            for client in [each for each in waiting if each.turn]:
                client.done()
                waiting.discard(client)
