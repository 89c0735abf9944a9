"""Jobs on several cards: their command lines, and what shares allow them."""

from benchmarks.compute import linked_jobs
from benchmarks.compute.linked_jobs import LinkedJob, ParallelLoad


def test_a_share_allows_as_many_steps_as_keep_the_busiest_card_at_work_for_it() -> None:
    job = LinkedJob("threads", 6_000, 1, 2_000, last_work_us=4_000)
    goal = linked_jobs.goal_of(job, 50, native=100)
    assert (goal.least, goal.most) == (0.95 * 50, 1.05 * 50 / 0.8)
    assert linked_jobs.goal_of(job, 90, native=100).most == 1.05 * 100
    assert linked_jobs.goal_of(job, 100, native=100).least == 95


def test_processes_of_a_job_have_a_card_each_and_the_last_one_less_work() -> None:
    job = LinkedJob("processes", 6_000, 1, 2_000, last_work_us=4_000)
    first, last = (load.command(3.0)[1:] for load in job.loads(2))
    group = first[-1]
    assert first == ["threads", "6000,4000", "1", "2000", "1", "3.0", "2", "0", group]
    assert last == ["threads", "6000,4000", "1", "2000", "1", "3.0", "2", "1", group]


def test_ranks_of_one_process_have_all_cards() -> None:
    (load,) = LinkedJob("serial", 500, 2, 100).loads(4)
    assert isinstance(load, ParallelLoad)
    assert (load.ranks, load.cards, load.first) == (4, 4, 0)
