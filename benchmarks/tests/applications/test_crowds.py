"""What a crowd's figures and goals are."""

from benchmarks.applications import crowds
from benchmarks.applications.crowds import Crowd, CrowdMember
from benchmarks.applications.pairs import BEST_EFFORT, Side

TRAINER = CrowdMember("trainer", "steps", BEST_EFFORT)
MIXED = Crowd("mixed", (*crowds.small(2, "open", crowds.burst(12)), TRAINER))
ALONE = {"small_model open": Side(2.0, 4.0, 20.0), "trainer steps": Side(30.0, 31.0, 30.0)}
BESIDE = [Side(3.0, 5.0, 20.0), Side(2.5, 8.0, 10.0), Side(60.0, 70.0, 15.0)]


def test_members_that_do_the_same_are_one_group() -> None:
    found = crowds.crowd_figures(MIXED, ALONE, BESIDE)
    assert found["sum over alone"] == 1 + 0.5 + 0.5
    assert found["small_model open: each s"] == 30
    assert (found["small_model open: p50 ms"], found["small_model open: p99 ms"]) == (2.75, 8.0)
    assert (found["small_model open: p50 over alone"], found["small_model open: p99 over alone"]) == (1.375, 2.0)


def test_guaranteed_members_are_not_slower_than_natively_by_more_than_the_rounds_differ() -> None:
    goals = crowds.crowd_goals(MIXED, crowds.crowd_figures(MIXED, ALONE, BESIDE))
    assert {name: goal.most for name, goal in goals.items() if name != "sum over alone"} == {
        "small_model open: p50 ms": crowds.EQUAL * 2.75,
        "small_model open: p99 ms": crowds.EQUAL * 8.0,
    }
    assert goals["sum over alone"].least == 0.99 * 2


def test_fixed_members_are_compared_with_alone() -> None:
    crowd = Crowd("fixed", crowds.small(2, "open", (12, crowds.FIXED)))
    goals = crowds.crowd_goals(crowd, {})
    assert {name: goal.most for name, goal in goals.items()} == {
        "small_model open: p50 over alone": 1.05,
        "small_model open: p99 over alone": 1.2,
    }


def test_open_members_have_arrivals_of_their_own() -> None:
    members = crowds.small(4, "open", crowds.burst(12))
    assert len({member.kind for member in members}) == 4
    assert len({member.group for member in members}) == 1
