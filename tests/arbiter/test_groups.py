"""Groups in space at the real arbiter: which clients are one tenant, and what their limits say together."""

import functools
import time

import pytest

from limiter.arbitration import ANY, HELLO, IN_SPACE, JOINS, MAGIC, VERSION
from tests.arbiter.client import Client
from tests.arbiter.conftest import CARD, GPU, Container, Node, until
from vgpu.domain.asks.policy import ComputePolicy
from vgpu.domain.asks.space import SpaceGroup
from vgpu.domain.formats.limits import CardLimit, Limits, SpaceMembership
from vgpu.domain.identifiers import Namespace

pytestmark = pytest.mark.slow

MS = 1_000_000
MODELS, OTHERS = (SpaceGroup(Namespace("team"), name) for name in ("models", "others"))
MEMBER_HELLO = HELLO.pack(MAGIC, VERSION, JOINS | IN_SPACE, CARD)


def limits_of(cores: int, group: SpaceGroup | None = None) -> Limits:
    space = SpaceMembership(group.fingerprint, None) if group else None
    return Limits((CardLimit(GPU, None, cores),), ComputePolicy.BURST, space=space)


def busy(*containers: Container) -> None:
    """Their work goes on for a minute."""
    for container in containers:
        container.set_busy_until(time.clock_gettime_ns(time.CLOCK_MONOTONIC) + 60_000 * MS)


def is_asked_back(client: Client, turn: int) -> bool:
    return client.turn != turn or client.yields == turn


def contend(*clients: Client) -> None:
    """All clients want the card, and know that others do."""
    for client in clients:
        client.want()
    until(lambda: all(client.contended for client in clients))
    for client in clients:
        client.want()


def test_members_hold_their_groups_turn_together_and_give_it_back_together(node: Node) -> None:
    folders = [node.add(limits_of(20, MODELS)) for _ in range(2)]
    outside = node.add(limits_of(40))
    first, second = (folder.connect(hello=MEMBER_HELLO) for folder in folders)
    neighbour = outside.connect()
    busy(*folders, outside)
    contend(neighbour, first, second)
    for _ in range(5):
        until(lambda: first.turn and second.turn)
        assert neighbour.turn == 0
        assert (first.budget, second.budget) == (ANY, ANY)
        until(lambda: first.yields == first.turn and second.yields == second.turn)
        first.done()
        time.sleep(0.005)
        assert neighbour.turn == 0
        second.done()
        first.want()
        second.want()
        assert neighbour.wait()
        assert (first.turn, second.turn) == (0, 0)
        until(lambda: neighbour.yields == neighbour.turn)
        neighbour.done()
        neighbour.want()


def test_groups_and_processes_outside_of_their_groups_server_are_tenants_of_their_own(node: Node) -> None:
    member, other = node.add(limits_of(20, MODELS)), node.add(limits_of(20, OTHERS))
    clients = [member.connect(hello=MEMBER_HELLO), other.connect(hello=MEMBER_HELLO), member.connect()]
    busy(member, other)
    contend(*clients)
    deadline, had = time.monotonic() + 5, set[int]()
    while len(had) < len(clients) and time.monotonic() < deadline:
        for index, client in enumerate(clients):
            if turn := client.turn:
                had.add(index)
                until(functools.partial(is_asked_back, client, turn))
                client.done(turn)
                client.want()
    assert had == {0, 1, 2}


def test_a_group_has_the_sum_of_its_members_guarantees_until_they_leave(node: Node) -> None:
    """`fallback_percent` is a member's part of that sum."""
    members = [node.add(limits_of(cores, MODELS)) for cores in (30, 20, 10)]
    outside = node.add(limits_of(40))
    clients = [member.connect(hello=MEMBER_HELLO) for member in members]
    neighbour = outside.connect()
    busy(*members, outside)
    contend(neighbour, *clients)
    until(lambda: [client.fallback_percent for client in clients] == [20, 20, 20])
    assert neighbour.fallback_percent == 40
    members[0].folder.rename(node.allocations.parent / "gone")
    until(clients[0].has_ended)
    clients[1].want()
    until(lambda: [client.fallback_percent for client in clients[1:]] == [15, 15])


def test_a_container_whose_limits_name_no_group_any_more_connects_anew_and_by_itself(node: Node) -> None:
    leaving, staying = node.add(limits_of(20, MODELS)), node.add(limits_of(20, MODELS))
    client, other = leaving.connect(hello=MEMBER_HELLO), staying.connect(hello=MEMBER_HELLO)
    leaving.limit(limits_of(20))
    until(client.has_ended)
    again = leaving.connect(hello=MEMBER_HELLO)
    busy(leaving, staying)
    contend(again, other)
    until(lambda: again.turn or other.turn)
    assert not (again.turn and other.turn)
