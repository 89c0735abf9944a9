"""What the figures and goals of groups in space are."""

from benchmarks.applications import crowds, space_crowds
from benchmarks.applications.crowds import Crowd, CrowdMember
from benchmarks.applications.pairs import BEST_EFFORT, Side
from benchmarks.applications.space_crowds import SpaceCrowd

SMALL = crowds.small(2, "closed", crowds.burst(10))
BESIDE = (CrowdMember("trainer", "steps", (30, "fixed")), CrowdMember("trainer", "steps", BEST_EFFORT))
ALONE = {"small_model closed": Side(2.0, 4.0, 100.0), "trainer steps": Side(30.0, 31.0, 40.0)}
SIDES = [Side(3.0, 5.0, 60.0), Side(3.0, 6.0, 50.0), Side(60.0, 70.0, 12.0), Side(60.0, 70.0, 4.0)]


def test_a_group_has_to_do_what_mps_alone_does() -> None:
    crowd = SpaceCrowd(Crowd("group", SMALL))
    plain = space_crowds.space_figures(crowd, ALONE, SIDES[:2])
    assert plain["sum over alone"] == 1.1
    goals = space_crowds.space_goals(crowd, plain)
    assert goals["sum over alone"].least == 0.97 * 1.1
    assert goals["small_model closed: p99 ms"].most == 1.1 * 6


def test_a_program_beside_a_group_has_its_share() -> None:
    crowd = SpaceCrowd(Crowd("beside", SMALL), BESIDE)
    found = space_crowds.space_figures(crowd, ALONE, SIDES)
    assert found["sum over alone"] == 1.1
    assert (found["beside: fixed 30, %"], found["beside: best-effort, %"]) == (30, 10)
    goals = space_crowds.space_goals(crowd, found)
    assert {name: (goal.least, goal.most) for name, goal in goals.items()} == {"beside: fixed 30, %": (28.5, 31.5)}
