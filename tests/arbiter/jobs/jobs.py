"""Containers whose limits and regions make them jobs, with a client on each of their cards."""

import functools
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

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


def add(
    node: Node,
    cards: Sequence[int],
    linked: int | None = None,
    wanted: Limits | None = None,
    job: bytes | None = None,
) -> Job:
    """A container on the cards, which are linked unless `linked` says which are, in bits. `job`: of its limits."""
    entries = tuple(CardLimit(limits.uuid_text(CARDS[card]), None, 100) for card in cards)
    container = node.add(replace(wanted or Limits(entries, ComputePolicy.FIXED, 0), job=job))
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


def assert_that_one_begins_when_the_other_has_drained(first: Job, second: Job) -> None:
    """Two jobs on the same two cards: the second begins on neither before both have drained."""
    first.clients[0].want()
    until(lambda: all(first.turns))
    second.clients[1].want()
    until(lambda: all(first.is_asked_back))
    first.clients[0].done()
    time.sleep(0.005)
    assert second.turns == [False, False]
    first.clients[1].done()
    until(lambda: all(second.turns))
