"""Names, labels and owners of every kind are stored, and change nothing in what the history says of others."""

import json
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine

from extender.history.recording import decisions, lines
from extender.history.recording.events import Decision, PodOwner, Record, Refusals
from extender.history.reporting.prices import Prices
from extender.history.reporting.reports import Dimension, HistoryFilters, UsageGroup
from extender.history.reporting.sql_reports import SqlReports
from extender.history.storage import database, ingest
from extender.state.pod_reader import PodReader
from tests.extender.history import make
from tests.extender.history.make import HOUR, MONDAY
from tests.hostile_pods import tenants
from vgpu.domain.identifiers import Namespace, PodUid

OTHER = Namespace("other")
NEIGHBOUR: list[Record] = [
    make.decision(1, MONDAY, namespace=OTHER, labels={"app": "web"}),
    make.end(1, namespace=OTHER),
]
GROUPS = (UsageGroup(Dimension.NAMESPACE), UsageGroup(Dimension.OWNER), UsageGroup(Dimension.LABEL, "app"))
MAX_OWNER = 320  # of its column


def recorded(pod: dict[str, Any], number: int) -> list[Record]:
    """The history's records of a pod: that it waited, its decision with what the watch shows of it, and its end."""
    watched = PodReader().decoded(json.loads(json.dumps(pod)))
    name = replace(decisions.pod_name(watched), uid=PodUid(f"hostile-{number}"))
    kind, owner = watched.lifecycle.owner
    waited = Refusals(name, MONDAY, MONDAY + 1, 1, {"CardTooSmall": 1}, watched.name)
    made: Decision = replace(
        make.decision(1, MONDAY),
        pod=name,
        owner=PodOwner(kind, owner) if kind else PodOwner("Pod", watched.name),
        labels=decisions.labels(watched.scheduling.labels),
    )
    return [waited, made, replace(make.end(1), pod=name)]


def check(engine: Engine, pods: Sequence[dict[str, Any]]) -> None:
    records = [*NEIGHBOUR, *(record for n, pod in enumerate(pods) for record in recorded(pod, n))]
    with database.writing(engine) as connection:
        ingest.ingest(connection, [lines.decode(lines.encode(record).removesuffix(b"\n")) for record in records])
    reports = SqlReports(engine, Prices(), lambda: MONDAY + 2 * HOUR)
    assert len(reports.history(HistoryFilters(), limit=1000).entries) == len(records)
    rows = reports.usage(GROUPS, MONDAY, MONDAY + 2 * HOUR)
    assert [(row.group, row.share_seconds) for row in rows if row.group[0] == OTHER] == [
        ((OTHER, "Deployment/web", "web"), 900)
    ]
    for row in rows:
        namespace, owner, _ = row.group
        assert owner is not None
        assert owner.isprintable()
        assert len(owner) <= MAX_OWNER
        assert namespace in (OTHER, "hostile")


@pytest.mark.heavy
@settings(max_examples=15, deadline=None)
@given(pods=st.lists(tenants.admissible, min_size=1, max_size=4))
def test_what_tenants_write_is_stored_and_changes_no_others_usage(empty: Path, pods: list[dict[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copy(empty, Path(folder) / "history.db")
        engine = database.engine(database.sqlite_url(Path(copy)))
        check(engine, pods)
        engine.dispose()


def hostile(text: str) -> dict[str, Any]:
    owner = {"kind": text, "name": text, "controller": True, "uid": "o"}
    metadata = {"name": "a" * 253, "namespace": "hostile", "uid": "hostile", "ownerReferences": [owner]}
    labels = {f"{'l' * 253}/{'k' * 56}{n}": "v" * 63 for n in range(100)}
    return {"metadata": metadata | {"labels": labels}, "spec": {"containers": []}, "status": {}}


@pytest.mark.parametrize("text", ["a\0b", "\x1b[2J", "\u202e", "x" * 262_144, "\U0001f4a9" * 400, ""])
def test_no_owner_is_refused_by_a_database(engine: Engine, text: str) -> None:
    check(engine, [hostile(text)])
