"""What the rounds of a fault become in a result, and how a goal is missed."""

import pytest

from benchmarks.recovery import __main__ as recovery
from benchmarks.recovery.__main__ import FaultCost
from benchmarks.recovery.goals import GOALS
from benchmarks.report import render
from benchmarks.report.tables.faults import RECOVERY
from benchmarks.tests import made_up


@pytest.mark.parametrize(
    ("seconds", "failed", "fault"),
    [
        ([20.0, 29.0, 30.0], [0, 0, 0], ""),
        ([20.0, 21.0, 31.0], [0, 0, 0], "later than the goal"),
        ([20.0, 21.0, 22.0], [0, 1, 0], "pods failed"),
        ([40.0, 41.0, 42.0], [2, 0, 0], "later than the goal; pods failed"),
    ],
)
def test_a_goal_is_missed_by_the_worst_round_or_by_a_failed_pod(
    seconds: list[float], failed: list[int], fault: str
) -> None:
    row = recovery.row("extender killed", FaultCost(seconds, failed, [1.0, 3.5, 2.0]))
    assert (row.id, row.goal, row.fault) == ("recovery.extender-killed", "at most 30 s; no pod fails", fault)
    assert (row.value, row.worst) == (seconds[1], seconds[2])
    assert row.details == {"count": 3, "failed": sum(failed), "load": 3.5}


def test_a_reboot_has_no_goal_and_may_fail_pods() -> None:
    row = recovery.row("node rebooted", FaultCost([60.0], [4], [0.5]))
    assert (row.goal, row.fault) == ("", "")


def test_a_goal_without_seconds_still_says_that_no_pod_fails() -> None:
    assert GOALS["device plugin killed"].words == "no pod fails"


def test_the_table_shows_the_goal_the_failed_pods_and_the_load_of_each_fault() -> None:
    row = recovery.row("extender stopped", FaultCost([2.0, 4.0], [0, 1], [1.0, 2.5]))
    text = render.render(RECOVERY, render.newest([made_up.run(row)], {}))
    assert "| extender stopped | at most 3 s; no pod fails | **3.0** | 4.0 | 1 in 2 | 2.5 |" in text
    assert all(f"| {fault} " in text for fault in GOALS)
