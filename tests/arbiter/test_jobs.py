"""Containers with linked cards: their turns on all of these begin at the same moment, and end before others begin."""

import functools
import os
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from tests.arbiter.client import Client
from tests.arbiter.conftest import Container, Node, until
from vgpu.domain.asks.policy import ComputePolicy
from vgpu.domain.formats import limits
from vgpu.domain.formats.limits import CardLimit, Limits

CARDS = [bytes([card, *range(1, 16)]) for card in range(3)]
CARD_ROW, CARD_SIZE, VALID, BUSY_UNTIL = 256, 256, 48, 152  # of a region
SLOTS_HIGH, SLOT, LINKED = 28, 8448, 44
LONG_S = 60.0


@dataclass
class Job:
    """A container, whose process has linked some cards, with a client on each of them."""

    container: Container
    cards: Sequence[int]
    clients: list[Client]

    def want(self) -> None:
        for client in self.clients:
            client.want()

    def is_of_job(self) -> bool:
        return all(client.read().job for client in self.clients)

    @property
    def turns(self) -> list[bool]:
        return [client.turn != 0 for client in self.clients]

    @property
    def is_asked_back(self) -> list[bool]:
        return [client.turn != 0 and client.yields == client.turn for client in self.clients]


def write(container: Container, offset: int, value: bytes) -> None:
    with (container.folder / "region").open("r+b") as file:
        os.pwrite(file.fileno(), value, offset)


def set_busy(container: Container, seconds: float) -> None:
    """The region says that the work on each card ends in so many seconds."""
    ends = time.monotonic_ns() + int(seconds * 1e9)
    for row in range(len(CARDS)):
        write(container, CARD_ROW + row * CARD_SIZE + BUSY_UNTIL, ends.to_bytes(8, "little"))


def add(node: Node, cards: Sequence[int], linked: int | None = None) -> Job:
    """A container on the cards, which are linked unless `linked` says which are, in bits."""
    entries = tuple(CardLimit(limits.uuid_text(CARDS[card]), None, 100) for card in cards)
    container = node.add(Limits(entries, ComputePolicy.FIXED, 0))
    for row, card in enumerate(CARDS):
        write(container, CARD_ROW + row * CARD_SIZE, card)
        write(container, CARD_ROW + row * CARD_SIZE + VALID, b"\1")
    bits = sum(1 << card for card in cards) if linked is None else linked
    write(container, SLOT, (1).to_bytes(4, "little"))
    write(container, SLOT + LINKED, bits.to_bytes(4, "little"))
    write(container, SLOTS_HIGH, (1).to_bytes(4, "little"))
    set_busy(container, LONG_S)
    return Job(container, cards, [container.connect(CARDS[card]) for card in cards])


def become_jobs(*jobs: Job) -> None:
    """Until the arbiter has seen that the cards are linked, and no job has a turn."""

    def are_jobs() -> bool:
        for job in jobs:
            release(job)
            job.want()
        return all(job.is_of_job() for job in jobs)

    until(are_jobs)
    for job in jobs:
        release(job)
    for job in jobs:
        until(functools.partial(is_released, job))


def release(job: Job) -> None:
    for client in job.clients:
        if client.turn:
            client.done()


def is_released(job: Job) -> bool:
    """A job that waits gets a turn as soon as others have given theirs back."""
    release(job)
    time.sleep(0.01)
    return not any(job.turns)


def pair(node: Node) -> tuple[Job, Job]:
    first, second = add(node, (0, 1)), add(node, (0, 1))
    become_jobs(first, second)
    return first, second


def test_a_job_that_asks_on_one_card_has_its_turn_on_all(node: Node) -> None:
    first, _ = pair(node)
    first.clients[0].want()
    until(lambda: all(first.turns))
    numbers = {client.read().job for client in first.clients}
    assert len(numbers) == 1


def test_a_job_begins_when_the_last_card_of_the_other_one_has_drained(node: Node) -> None:
    first, second = pair(node)
    first.clients[0].want()
    until(lambda: all(first.turns))
    second.clients[1].want()
    until(lambda: all(first.is_asked_back))
    first.clients[0].done()
    time.sleep(0.005)
    assert second.turns == [False, False]
    first.clients[1].done()
    until(lambda: all(second.turns))


def test_a_tenant_of_one_card_begins_on_a_card_that_has_drained(node: Node) -> None:
    first, _ = pair(node)
    single = add(node, (0,))
    first.clients[0].want()
    until(lambda: all(first.turns))
    single.want()
    until(lambda: all(first.is_asked_back))
    first.clients[0].done()
    until(lambda: all(single.turns))
    assert first.turns == [False, True]


def test_a_rank_that_does_not_answer_holds_its_card_for_a_second_at_most(node: Node) -> None:
    first, second = pair(node)
    first.clients[0].want()
    until(lambda: all(first.turns))
    second.want()
    until(lambda: all(first.is_asked_back))
    since = time.monotonic()
    first.clients[0].done()
    until(lambda: all(second.turns))
    assert time.monotonic() - since < 1


def test_a_rank_that_ends_gives_its_card_up(node: Node) -> None:
    first, second = pair(node)
    first.clients[0].want()
    until(lambda: all(first.turns))
    second.want()
    first.clients[0].close()
    until(lambda: first.clients[1].yields == first.clients[1].turn)
    first.clients[1].done()
    until(lambda: all(second.turns))


def test_an_arbiter_that_is_killed_in_a_jobs_turn_begins_anew(node: Node) -> None:
    first, second = pair(node)
    first.clients[0].want()
    until(lambda: all(first.turns))
    node.end(signal.SIGKILL)
    node.start()
    for job in (first, second):
        until(functools.partial(reconnect, job))
    become_jobs(first, second)
    second.clients[0].want()
    until(lambda: all(second.turns))


def test_who_says_that_cards_of_others_are_linked_gains_nothing(node: Node) -> None:
    """A container can write its region, so it may claim anything of the cards there; turns are its own only."""
    false, other = add(node, (0,), linked=2**32 - 1), add(node, (0,))
    lonely = add(node, (1,))
    false.want()
    other.want()
    time.sleep(1.2)  # the arbiter reads regions twice a second
    assert [client.read().job for client in (*false.clients, *other.clients, *lonely.clients)] == [0, 0, 0]


def reconnect(job: Job) -> bool:
    """Whether the arbiter listens again."""
    try:
        job.clients = [job.container.connect(CARDS[card]) for card in job.cards]
    except OSError:
        return False
    return True


def holders(jobs: Sequence[Job], card: int) -> list[int]:
    return [
        number
        for number, job in enumerate(jobs)
        for own, client in zip(job.cards, job.clients, strict=True)
        if own == card and client.turn
    ]


@pytest.mark.parametrize("sets", [[(0, 1), (1, 2), (0, 2)], [(0, 1), (0, 1), (0, 1)], [(0, 1, 2), (0, 1), (1, 2)]])
def test_jobs_on_overlapping_sets_of_cards_take_turns(node: Node, sets: list[tuple[int, ...]]) -> None:
    jobs = [add(node, cards) for cards in sets]
    become_jobs(*jobs)
    turns = [0] * len(jobs)
    end = time.monotonic() + 10
    while min(turns) < 5:
        assert time.monotonic() < end, turns
        for job, number in zip(jobs, range(len(jobs)), strict=True):
            job.want()
            if all(job.is_asked_back):
                assert all(holders(jobs, card) == [number] for card in job.cards)
                turns[number] += 1
                release(job)
        time.sleep(0.001)
