"""The script measures a real extender over a small cluster."""

import argparse

import pytest

from benchmarks import filter_latency


@pytest.mark.slow
async def test_every_row_has_a_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filter_latency, "EVENTS", 50)
    monkeypatch.setattr(filter_latency, "DRAIN_S", 0.2)
    monkeypatch.setattr(filter_latency, "SETTLED_S", 0.2)
    asked = argparse.Namespace(nodes=3, gpus=2, pods=6, names=3, calls=5)
    rows = await filter_latency.measure(asked, None)
    figures = ("filter, equal pods", "prioritize, equal pods", "watch event")
    *verbs, event = [filter_latency.row_id(3, 3, figure) for figure in figures]
    assert {*verbs, event} <= {row.id for row in rows}
    assert all(row.value is not None and row.value > 0 for row in rows if row.id != event)
    lines = filter_latency.table(asked, rows, rows).splitlines()
    assert (len(lines), lines[2].split()[-1]) == (2 + len(rows), "1.00")  # the ratio to itself
