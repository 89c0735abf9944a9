"""Containers whose limits name one job: they have their turns at the same moment, and nobody else with them."""

import functools
import time
from dataclasses import replace

import pytest

from tests.arbiter.conftest import Container, Node, until
from tests.arbiter.jobs.jobs import (
    BUSY_UNTIL,
    CARD_ROW,
    CARD_SIZE,
    CARDS,
    Job,
    add,
    assert_that_one_begins_when_the_other_has_drained,
    become_jobs,
    release,
    write,
)
from vgpu.domain.asks.policy import ComputePolicy
from vgpu.domain.formats import limits
from vgpu.domain.formats.limits import CardLimit, Limits

JOB, OTHER_JOB = b"j" * 16, b"o" * 16
ACTIVITY, ACTIVITY_SIZE, WINDOW, WINDOW_STATE = 753920, 256, 244, 252  # of a region
HOLDER = 160  # of a card's row
AWAITED = 1 << 30


def gang(node: Node, *cards: int, name: bytes = JOB, wanted: Limits | None = None) -> Job:
    """A container on each card, of one job; seen as one job with a client on each card."""
    members = [add(node, (card,), linked=0, wanted=wanted, job=name) for card in cards]
    return Job(members[0].container, cards, [member.clients[0] for member in members])


def share_of(card: int, cores: int, policy: str, priority: int = 0) -> Limits:
    return Limits((CardLimit(limits.uuid_text(CARDS[card]), None, cores),), ComputePolicy(policy), priority)


def note_progress(container: Container, card: int, job: int, batches: int) -> None:
    """The container's region says how far the card is in the job's turn."""
    row = ACTIVITY + card * ACTIVITY_SIZE
    write(container, row + WINDOW, job.to_bytes(4, "little"))
    write(container, row + WINDOW_STATE, batches.to_bytes(4, "little"))


def pair(node: Node) -> tuple[Job, Job]:
    first, second = gang(node, 0, 1), gang(node, 0, 1, name=OTHER_JOB)
    become_jobs(first, second)
    return first, second


def test_a_job_of_two_containers_that_asks_on_one_card_has_its_turn_on_both(node: Node) -> None:
    first, _ = pair(node)
    first.clients[0].want()
    until(lambda: all(first.turns))
    assert len({client.read().job for client in first.clients}) == 1
    assert [client.read().job_spans for client in first.clients] == [1, 1]


def test_a_job_of_two_containers_begins_when_the_last_card_of_the_other_one_has_drained(node: Node) -> None:
    assert_that_one_begins_when_the_other_has_drained(*pair(node))


def test_each_container_is_told_how_far_the_others_are_when_the_turn_is_asked_back(node: Node) -> None:
    first, second = pair(node)
    first.clients[0].want()
    until(lambda: all(first.turns))
    number = first.clients[0].read().job
    note_progress(node.containers[0], 0, number, 7)
    assert first.clients[1].read().job_batches == 0
    second.want()
    until(lambda: all(first.is_asked_back))
    assert first.clients[1].read().job_batches == 7, "with the request to yield"
    note_progress(node.containers[0], 0, number, 9)
    until(lambda: first.clients[1].read().job_batches == 9, 0.02)
    assert first.clients[0].read().job_batches == 0, "the other one has launched nothing"


def test_progress_in_another_turn_does_not_count(node: Node) -> None:
    first, second = pair(node)
    first.clients[0].want()
    until(lambda: all(first.turns))
    note_progress(node.containers[0], 0, first.clients[0].read().job + 1, 7)
    second.want()
    until(lambda: all(first.is_asked_back))
    assert first.clients[1].read().job_batches == 0


def test_a_container_is_told_that_work_of_another_one_is_late_and_waited_for(node: Node) -> None:
    first, second = pair(node)
    first.clients[0].want()
    until(lambda: all(first.turns))
    note_progress(node.containers[0], 0, first.clients[0].read().job, AWAITED + 1)
    row = CARD_ROW + 0 * CARD_SIZE
    write(node.containers[0], row + HOLDER, (2).to_bytes(4, "little"))
    write(node.containers[0], row + BUSY_UNTIL, (time.monotonic_ns() - 1).to_bytes(8, "little"))
    second.want()
    until(lambda: first.clients[1].read().job_awaited == 1)
    assert first.clients[0].read().job_awaited == 0


@pytest.mark.heavy
def test_who_names_no_job_or_another_one_gains_nothing_and_harms_nobody(node: Node) -> None:
    """Whatever its region says of its cards. A job is in the limits file, which the container cannot write."""
    honest, other = pair(node)
    false = [add(node, (0,), linked=2**32 - 1), gang(node, 1, name=b"f" * 16)]
    for job in false:
        job.want()
    time.sleep(1.2)  # the arbiter reads regions and limits twice a second
    assert [client.read().job for job in false for client in job.clients] == [0, 0]
    release(honest)
    release(other)
    for job in (honest, other):
        until(functools.partial(has_whole_turn, job, [*false, honest, other]))
        release(job)


def has_whole_turn(job: Job, all_jobs: list[Job]) -> bool:
    """Whether the job has its turns, while the others give back what they get and ask again."""
    if all(job.turns):
        return True
    for other in all_jobs:
        if other is not job and not any(job.turns):
            release(other)
        other.want()
    time.sleep(0.002)
    return False


@pytest.mark.heavy
def test_two_containers_of_a_job_on_one_card_have_turns_as_before(node: Node) -> None:
    doubled, other = gang(node, 0, 0), add(node, (0,), linked=0)
    for job in (doubled, other):
        job.want()
    time.sleep(1.2)
    assert [client.read().job for client in doubled.clients] == [0, 0]
    assert sum(doubled.turns) + sum(other.turns) == 1


def test_cards_that_two_containers_of_a_job_use_are_left_out(node: Node) -> None:
    mixed, other = gang(node, 0, 1, 2, 2), gang(node, 0, 1, 2, name=OTHER_JOB)

    def is_found() -> bool:
        for job in (mixed, other):
            release(job)
            job.want()
        return other.is_of_job() and [bool(client.read().job) for client in mixed.clients] == [True, True, False, False]

    until(is_found)


def test_a_container_that_is_removed_leaves_the_others_to_themselves(node: Node) -> None:
    first, second = pair(node)
    first.clients[0].want()
    until(lambda: all(first.turns))
    node.containers[0].folder.rename(node.allocations / ".gone")
    until(lambda: first.clients[1].read().job == 0)
    second.want()
    until(lambda: first.clients[1].yields == first.clients[1].turn)
    first.clients[1].done()
    until(lambda: all(second.turns))


def test_a_job_that_the_limits_name_no_longer_is_none(node: Node) -> None:
    first, _ = pair(node)
    node.containers[0].limit(replace(share_of(0, 100, "fixed"), job=None))
    until(lambda: [client.read().job for client in first.clients] == [0, 0])


@pytest.mark.heavy
def test_the_lowest_share_of_a_jobs_containers_counts_for_all(node: Node) -> None:
    """What each container may use without the arbiter shows what share it has with it."""
    high, low = share_of(0, 80, "burst"), share_of(1, 20, "burst")
    members = [add(node, (0,), 0, high, JOB), add(node, (1,), 0, low, JOB)]
    others = [add(node, (card,), 0, share_of(card, 20, "burst")) for card in (0, 1)]

    def are_equal() -> bool:
        for job in (*members, *others):
            release(job)
            job.want()
        percents = {job.clients[0].fallback_percent for job in (*members, *others)}
        return len(percents) == 1 and percents != {100}

    until(are_equal)
    node.containers[0].limit(high)  # without the job
    until(lambda: members[0].clients[0].fallback_percent > 50)


TOKENS, REFILLED_AT = 128, 136  # of a card's row


def fixed_gang(node: Node, cores: int = 50) -> Job:
    """A container with a fixed share on each of two cards, which nobody else uses."""
    members = [add(node, (card,), 0, share_of(card, cores, "fixed"), JOB) for card in (0, 1)]
    job = Job(members[0].container, (0, 1), [member.clients[0] for member in members])
    become_jobs(job)
    return job


def owe(container: Container, card: int, ms: int) -> None:
    """The container's region says that it owes so much GPU time of the card."""
    row = CARD_ROW + card * CARD_SIZE
    write(container, row + REFILLED_AT, time.monotonic_ns().to_bytes(8, "little"))
    write(container, row + TOKENS, (-ms * 1_000_000).to_bytes(8, "little", signed=True))


def test_a_job_with_fixed_shares_takes_turns_although_it_is_alone(node: Node) -> None:
    """No container knows by itself when the others close."""
    job = fixed_gang(node)
    assert [client.contended for client in job.clients] == [1, 1]
    job.clients[0].want()
    until(lambda: all(job.turns))
    until(lambda: all(job.is_asked_back), 0.5)


def test_a_job_that_owes_on_one_card_waits_on_all_until_that_is_repaid(node: Node) -> None:
    job = fixed_gang(node)
    owe(node.containers[1], 1, 200)  # 0.4 s at 50 %
    begun = time.monotonic()
    job.want()
    time.sleep(0.2)
    assert job.turns == [False, False]
    until(lambda: all(job.turns))
    assert 0.35 < time.monotonic() - begun < 1


@pytest.mark.heavy
def test_a_job_that_repays_for_longer_than_a_tenant_counts_as_active_stays_one(node: Node) -> None:
    """Before, it was none after two seconds: the card that owed nothing had a turn, and spun for the other one."""
    job = fixed_gang(node)
    job.want()
    until(lambda: all(job.turns))
    owe(node.containers[1], 1, 1500)  # 3 s at 50 %
    release(job)
    until(lambda: not any(job.turns))
    job.clients[0].want()
    begun = time.monotonic()
    while time.monotonic() < begun + 2.6:
        assert job.turns == [False, False]
        assert job.is_of_job()
        time.sleep(0.02)
    until(lambda: all(job.turns))


def test_a_job_that_owes_lets_others_have_the_card_that_it_waits_for(node: Node) -> None:
    job, other = fixed_gang(node), add(node, (0,), 0, share_of(0, 40, "fixed"))
    owe(node.containers[1], 1, 1000)
    job.want()
    other.want()
    until(lambda: all(other.turns), 1)
    assert job.turns == [False, False]


def test_a_rank_that_does_not_work_keeps_no_turn_of_a_job_that_is_alone(node: Node) -> None:
    job = fixed_gang(node)
    job.clients[0].want()
    until(lambda: all(job.turns))
    until(lambda: all(job.is_asked_back), 0.5)
    row = CARD_ROW + 1 * CARD_SIZE + BUSY_UNTIL
    write(node.containers[1], row, (time.monotonic_ns() - 1_000_000).to_bytes(8, "little"))
    until(lambda: job.clients[1].turn == 0, 0.03)


@pytest.mark.heavy
def test_a_job_without_fixed_shares_that_is_alone_needs_no_turns(node: Node) -> None:
    job = gang(node, 0, 1)
    job.want()
    time.sleep(1.2)
    assert [client.contended for client in job.clients] == [0, 0]


def test_who_is_left_of_a_job_with_fixed_shares_needs_no_turns(node: Node) -> None:
    job = fixed_gang(node)
    node.containers[0].folder.rename(node.allocations / ".gone")
    until(lambda: job.clients[1].contended == 0)
