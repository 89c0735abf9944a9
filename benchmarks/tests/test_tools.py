"""`benchmarks.hold`, `live_diagnosis`, `page_speed` and `admin_load`: how figures are judged."""

import argparse
from typing import Any

import pytest

from benchmarks import admin_load, hold, live_diagnosis, page_speed
from benchmarks.calls.quantile_ratio import CallRound


@pytest.mark.parametrize(
    ("samples", "seconds"),
    [
        ([50] * 60, 0.0),
        ([0] * 13 + [50] * 60, 6.0),  # a mean over 20 samples is near when all but one of them are
        ([50] * 30 + [0] * 30, None),
        ([40, 60] * 30, 0.0),
        ([0] * 60, None),
    ],
)
def test_settling_is_the_time_after_which_the_mean_stays_near(samples: list[int], seconds: float | None) -> None:
    assert hold.settling_s(samples, 50) == seconds


def test_a_target_is_missed_by_its_mean_and_by_a_sleep() -> None:
    log: list[dict[str, Any]] = [{"message": "Sleep: others use the card, load 61"}]
    rows = {target_row.id: target_row for target_row in hold._target_rows(50, 30.0, [0] * 12 + [54] * 48, 500.0, log)}
    assert (rows["target-50.mean"].value, rows["target-50.mean"].fault) == (54, "+4.0 points")
    assert rows["target-50.sleeps"].fault == "slept alone"


def test_only_the_first_code_is_right_and_none_for_a_healthy_program() -> None:
    idle = next(case for case in live_diagnosis.CASES if case.code == "idle")
    healthy = next(case for case in live_diagnosis.CASES if not case.code)
    found = [{"code": "host-bound", "seen": "x"}, {"code": "idle", "seen": "y"}]
    assert live_diagnosis.code_row(idle, found).fault == "found host-bound idle"
    assert live_diagnosis.code_row(idle, found[1:]).fault == ""
    assert live_diagnosis.code_row(healthy, found).fault == "found host-bound idle"
    assert live_diagnosis.code_row(healthy, []).fault == ""


def test_a_cure_is_within_a_factor_of_two_of_what_was_said() -> None:
    case = live_diagnosis.CASES[2]
    said = [{"at_most_times_as_fast": 4.0}]
    assert live_diagnosis.cure_row(case, 2.0, said).fault == ""
    assert live_diagnosis.cure_row(case, 1.9, said).fault == "0.47 of what was said"
    assert live_diagnosis.cure_row(case, 8.1, said).fault == "2.02 of what was said"
    assert live_diagnosis.cure_row(case, 3.0, []).fault


def test_a_page_is_judged_by_its_medians() -> None:
    costs = [page_speed.LiveUpdate(ms, 0) for ms in (20, 49, 120)]
    view, update, task = page_speed.rows([1.4, 1.5, 1.6], costs, {"cards": 5000})
    assert (view.id, view.value, view.worst, view.fault) == ("page.first-view", 1.5, 1.6, "1.50 s")
    assert (update.value, update.worst, update.fault, update.rounds) == (49, 120, "", (20, 49, 120))
    assert task.fault == ""


@pytest.mark.parametrize(
    ("kind", "slower", "fault"), [("pages", 1.05, ""), ("pages", 1.2, "missed"), ("bodies", 1.2, "")]
)
def test_open_pages_may_cost_less_than_clients_that_send_all_they_may(kind: str, slower: float, fault: str) -> None:
    rounds = [CallRound([1.0, 1.0, 2.0], [slower, slower, 2.0 * slower])] * 3
    asked = argparse.Namespace(nodes=1, pods=2)
    *_, ratio = admin_load.result_rows(kind, rounds, asked)
    assert ratio.value == pytest.approx(slower)
    assert ratio.fault == fault
