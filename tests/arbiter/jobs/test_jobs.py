"""Containers with linked cards: their turns on all of these begin at the same moment, and end before others begin."""

import functools
import signal
import time
from collections.abc import Sequence

import pytest

from tests.arbiter.conftest import Node, until
from tests.arbiter.jobs.jobs import (
    CARDS,
    Job,
    add,
    assert_that_one_begins_when_the_other_has_drained,
    become_jobs,
    release,
)


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
    assert_that_one_begins_when_the_other_has_drained(*pair(node))


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


@pytest.mark.heavy
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
