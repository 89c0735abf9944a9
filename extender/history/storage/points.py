"""Stores the points of five-minute series: the last report of each five minutes, of each container and card.

Reports contain what was used since their period began, so that the last one of five minutes has all earlier ones in
it: a report that is taken again, late or by another replica changes nothing.
"""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Connection, select

from extender.history.recording.events import CardMeasured, Used
from extender.history.storage import statements
from extender.history.storage.journal import KEY_BYTES
from extender.history.storage.tables import PointRow, SeriesRow
from vgpu.domain.cards.measured_use import WAIT_CAUSES
from vgpu.domain.identifiers import NO_CONTAINER, NO_POD

SLOT_MS: Final = 300_000
NO_WAITS: Final = dict.fromkeys([f"{cause}_ms" for cause in WAIT_CAUSES])

Row = dict[str, Any]
Measured = Used | CardMeasured


def store(connection: Connection, reports: Sequence[Measured]) -> None:
    """Store reports; `connection` is in a writing transaction."""
    keys = [_key(report) for report in reports]
    series = {key: _series(report, key) for key, report in zip(keys, reports, strict=True)}
    ids = _ids(connection, series)
    points: dict[tuple[int, int, int], Row] = {}
    for key, report in zip(keys, reports, strict=True):
        row = {"series_id": ids[key], **_point(report)}
        place = (row["series_id"], row["slot"], row["from_ms"])
        if place not in points or points[place]["until_ms"] < row["until_ms"]:
            points[place] = row
    rows = list(points.values())
    statements.replace(connection, PointRow.__table__, rows, "series_id", "slot", "from_ms", keep="until_ms")


def _ids(connection: Connection, series: Mapping[bytes, Row]) -> dict[bytes, int]:
    found = _known(connection, series)
    new = [row for key, row in series.items() if key not in found]
    if not new:
        return found
    statements.insert_new(connection, SeriesRow.__table__, new)
    return found | _known(connection, [row["key"] for row in new])


def _known(connection: Connection, keys: Collection[bytes]) -> dict[bytes, int]:
    rows = connection.execute(select(SeriesRow.key, SeriesRow.id).where(SeriesRow.key.in_(keys)))
    return {row.key: row.id for row in rows}


def _series(report: Measured, key: bytes) -> Row:
    pod_uid, container = (report.pod_uid, report.container) if isinstance(report, Used) else (NO_POD, NO_CONTAINER)
    return {"key": key, "node": report.node, "gpu": report.gpu, "pod_uid": pod_uid, "container": container}


def _key(report: Measured) -> bytes:
    row = _series(report, b"")
    named = (row["node"], row["gpu"], row["pod_uid"], row["container"])
    return hashlib.blake2b("\x1f".join(named).encode(), digest_size=KEY_BYTES).digest()


def _point(report: Measured) -> Row:
    begun = {"slot": report.until_ms // SLOT_MS, "from_ms": report.from_ms, "until_ms": report.until_ms}
    if isinstance(report, CardMeasured):
        used = {"used_ms": report.busy_ms, "used_mib": report.used_mib}
        return {**begun, **used, **NO_WAITS, "celsius": report.celsius, "watts": report.watts}
    waits = {f"{cause}_ms": waited for cause, waited in zip(WAIT_CAUSES, report.wait_ms, strict=False)}
    used = {"used_ms": report.gpu_ms, "used_mib": report.used_mib}
    return {**begun, **used, **NO_WAITS, **waits, "celsius": None, "watts": None}
