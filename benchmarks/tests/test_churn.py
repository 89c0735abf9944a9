"""`benchmarks.churn`: which figures are kept, and which growth is a fault."""

import os

import pytest

from benchmarks import churn
from vgpu.domain import names


def test_a_mark_is_the_median_of_the_last_minute() -> None:
    samples = [{"extender": 500.0}] * 5 + [{"extender": 100.0}] * 11 + [{"extender": 300.0, "webhook": 9.0}]
    assert churn.at_mark(samples) == {"extender": 100.0, "webhook": 9.0}


@pytest.mark.parametrize(("last", "fault"), [(108.0, ""), (109.0, "9.0 MiB more than after the warm-up")])
def test_growth_after_the_warm_up_is_a_fault(last: float, fault: str) -> None:
    marks = [{"extender": mib} for mib in (60.0, 100.0, 100.0, 100.0, 100.0, last)]
    (row,) = churn.rows(marks, 60.0, {"POST 201": 15_500})
    assert (row.id, row.native, row.value, row.fault) == ("churn.extender", 100.0, last, fault)
    assert row.details["minutes"] == [10.0, 20.0, 30.0, 40.0, 50.0, 60.0]
    assert row.details["POST 201"] == 15_500


def test_a_process_that_comes_and_goes_has_no_row() -> None:
    marks = [{"extender": 1.0}, {"extender": 1.0, "admin REST": 2.0}]
    assert [row.id for row in churn.rows(marks, 2.0, {})] == ["churn.extender"]


def test_pods_differ_as_those_of_users_do() -> None:
    made = [churn.manifest(number) for number in range(60)]
    assert len({pod["metadata"]["name"] for pod in made}) == 60
    assert len({str(pod["spec"]) for pod in made}) > 40
    assert all(int(pod["spec"]["containers"][0]["resources"]["limits"][names.GPU_MEM]) > 0 for pod in made)


def test_the_memory_of_a_process_can_be_read() -> None:
    assert churn.resident_mib(os.getpid()) > 10
    assert churn.processes(os.getpid())["simulator"] == os.getpid()
