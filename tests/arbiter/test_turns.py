"""The arbiter's turns, as a process gets them."""

import time

from tests.arbiter.client import ACCEPTED, ANY
from tests.arbiter.conftest import Node, asked, until

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
