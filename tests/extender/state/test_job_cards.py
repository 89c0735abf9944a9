"""The cards of jobs on a node, as pods come and go."""

from extender.state.gang_members import GangKey
from extender.state.job_cards import JobCards
from vgpu.domain.asks.gang import GangSource
from vgpu.domain.grants.assignment import Assignment, Grant
from vgpu.domain.identifiers import CardUuid, ContainerName, Namespace, PodUid

TRAIN: GangKey = (Namespace("team"), GangSource.ANNOTATION, "train")
OTHER: GangKey = (Namespace("team"), GangSource.ANNOTATION, "other")


def held(*cards: int, whole: bool = False) -> Assignment:
    grants = tuple(Grant(CardUuid(f"GPU-{card}"), 256, None, whole) for card in cards)
    return Assignment({ContainerName("main"): grants})


def sets(jobs: JobCards) -> list[list[str]]:
    return [sorted(card[-1] for card in cards) for cards in jobs.sets]


def test_single_cards_and_whole_cards_are_no_jobs_and_equal_sets_count_once() -> None:
    jobs = JobCards()
    jobs.add(PodUid("a"), None, held(0))
    jobs.add(PodUid("b"), None, held(4, 5, whole=True))
    assert jobs.sets == ()
    jobs.add(PodUid("c"), None, held(0, 1))
    jobs.add(PodUid("d"), None, held(1, 0))
    assert sets(jobs) == [["0", "1"]]
    jobs.remove(PodUid("c"))
    assert sets(jobs) == [["0", "1"]]
    jobs.remove(PodUid("d"))
    jobs.remove(PodUid("a"))
    assert jobs.sets == ()


def test_the_pods_of_a_gang_are_one_job_also_those_that_are_being_bound() -> None:
    jobs = JobCards()
    jobs.add(PodUid("a"), TRAIN, held(0))
    jobs.add(PodUid("b"), OTHER, held(3))
    assert jobs.sets == ()
    jobs.add(PodUid("c"), TRAIN, held(1))
    assert sets(jobs) == [["0", "1"]]
    more = jobs.with_reserved([(PodUid("d"), TRAIN, held(2)), (PodUid("e"), None, held(4))])
    assert more == (frozenset({"GPU-0", "GPU-1", "GPU-2"}),)
    assert sets(jobs) == [["0", "1"]]
    assert jobs.with_reserved([(PodUid("e"), None, held(4))]) == jobs.sets
    jobs.remove(PodUid("a"))
    assert jobs.sets == ()
