"""The script measures a real extender over a small cluster."""

import argparse

import pytest

from benchmarks import filter_latency


@pytest.mark.slow
async def test_every_row_has_a_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filter_latency, "EVENTS", 50)
    monkeypatch.setattr(filter_latency, "DRAIN_S", 0.2)
    asked = argparse.Namespace(nodes=3, gpus=2, pods=6, names=3, calls=5)
    rows = await filter_latency.measure(asked, None)
    assert {"latency.filter-equal-pods", "latency.prioritize-equal-pods", "latency.watch-event"} <= {r.id for r in rows}
    assert all(row.value is not None and row.value > 0 for row in rows if row.id != "latency.watch-event")
    lines = filter_latency.table(asked, rows, rows).splitlines()
    assert (len(lines), lines[2].split()[-1]) == (2 + len(rows), "1.00")  # the ratio to itself
