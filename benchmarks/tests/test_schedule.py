"""`benchmarks.schedule` has a row for each figure that its table shows. The script itself needs a cluster."""

from benchmarks import schedule
from benchmarks.report import tables

FOUND = {
    "nodes": 200,
    "cards": 8,
    "pods": 1000,
    "plain_pods_per_s": 50.0,
    "gpu_pods_per_s": 80.0,
    "ratio": 1.6,
    "share_of_time_in_filter_and_prioritize": 0.391,
    "calls": {"filter": 1, "prioritize": 1, "bind": 1},
    "median_ms": {"filter": 1.78, "prioritize": 2.29, "bind": 14.4},
}


def test_every_row_of_the_table_is_measured() -> None:
    found = {row.id: row for row in schedule.rows(FOUND)}
    assert set(found) == {row_id for line in tables.SCHEDULE.lines for row_id in line.ids}
    assert (found["schedule.pods-per-s"].native, found["schedule.pods-per-s"].value) == (50.0, 80.0)
    assert found["schedule.in-filter-and-prioritize"].value == 39.1
    assert found["schedule.median-bind"].value == 14.4


def test_the_printed_table_has_the_same_figures() -> None:
    text = schedule.table(FOUND)
    assert "| pods with a share, through us | 80.0 pods/s |" in text
    assert "| time in filter and prioritize | 39.1% |" in text
