"""`benchmarks.schedule` has a row for each figure that its table shows. The script itself needs a cluster."""

import json
from pathlib import Path

from benchmarks import schedule
from benchmarks.report.tables.control_plane import SCHEDULE

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
    "writes_a_pod": (1.0, 1.0),
    "processor_ms_a_pod": dict.fromkeys(schedule.PROGRAMS, (1.0, 2.0)),
}


def test_every_row_of_the_table_is_measured() -> None:
    found = {row.id: row for row in schedule.rows(FOUND)}
    assert set(found) == {row_id for line in SCHEDULE.lines for row_id in line.ids}
    assert (found["schedule.pods-per-s"].native, found["schedule.pods-per-s"].value) == (50.0, 80.0)
    assert found["schedule.in-filter-and-prioritize"].value == 39.1
    assert found["schedule.median-bind"].value == 14.4
    assert (found["schedule.processor-etcd"].native, found["schedule.processor-etcd"].value) == (1.0, 2.0)


def test_writes_to_the_pods_of_one_namespace_are_counted(tmp_path: Path) -> None:
    about = [{"resource": "pods", "namespace": "shares"}, {"resource": "pods", "namespace": "plain"}, None]
    lines = [json.dumps({"objectRef": reference} if reference else {}) for reference in [*about, *about]]
    log = tmp_path / "audit.log"
    log.write_text("\n".join(lines) + "\n")
    assert schedule.writes(log, 0, "shares") == 2
    assert schedule.writes(log, len(lines[0]) + 1, "shares") == 1


def test_the_printed_table_has_the_same_figures() -> None:
    text = schedule.table(FOUND)
    assert "| pods with a share, through us | 80.0 pods/s |" in text
    assert "| time in filter and prioritize | 39.1% |" in text
    assert "| processor time of extender | 1.00, 2.00 ms a pod |" in text
