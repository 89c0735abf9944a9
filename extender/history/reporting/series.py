"""Five-minute series of a card, and of the containers of cards and pods, from the stored points.

A figure covers the time between two reports, about five minutes. Used time and waits are what was counted between them:
their sum over the figures of a period is what its last report says. Before the oldest point there are hourly figures.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, func, select

from extender.history.reporting.reports import CardSeries, ContainerSeries, MeasuredFigure, PodSeries
from extender.history.storage.points import SLOT_MS
from extender.history.storage.tables import PodRow, PointRow, SeriesRow, UsedRow
from vgpu.domain.cards.measured_use import WAIT_CAUSES
from vgpu.domain.identifiers import NO_POD, CardUuid, ContainerName, Namespace, NodeName

MAX_POINTS: Final = 40_000  # 64 containers for two days
HOUR_MS: Final = 3_600_000
_POINT: Final = tuple(PointRow.__table__.columns)
_NAME: Final = (PodRow.namespace, PodRow.name)

Measured = type[SeriesRow] | type[UsedRow]
Chosen = Callable[[Measured], Sequence[ColumnElement[bool]]]  # conditions on a table with a node, a card and a pod
Name = tuple[Namespace, str, ContainerName, CardUuid]


def of_card(
    connection: Connection,
    node: NodeName,
    gpu: CardUuid,
    since_ms: int,
    until_ms: int,
    namespaces: frozenset[Namespace] | None,
) -> CardSeries:
    """Return the series of a card as its node reported them, and of the containers of these namespaces; None: all."""
    own = select(SeriesRow.id).where(SeriesRow.node == node, SeriesRow.gpu == gpu, SeriesRow.pod_uid == NO_POD)
    points = select(*_POINT).where(PointRow.series_id.in_(own), *_period(since_ms, until_ms)).order_by(*_ORDER)
    fine = figures(connection.execute(points).all(), since_ms)
    coarse = _card_hours(connection, node, gpu, since_ms, fine[0].from_ms if fine else until_ms)
    seen = () if namespaces is None else (PodRow.namespace.in_(namespaces),)
    containers = _containers(
        connection, since_ms, until_ms, lambda table: (table.node == node, table.gpu == gpu, *seen)
    )
    return CardSeries((*coarse, *fine), containers)


def of_pod(connection: Connection, namespace: Namespace, name: str, since_ms: int, until_ms: int) -> PodSeries:
    """Return the series of the containers of the latest pod of a name."""
    named = (PodRow.namespace == namespace, PodRow.name == name)
    latest = select(PodRow.uid).where(*named).order_by(PodRow.bound_ms.desc()).limit(1)
    uid = connection.scalar(latest)
    return _containers(connection, since_ms, until_ms, lambda table: (table.pod_uid == uid,))


def figures(points: Iterable[Any], since_ms: int) -> tuple[MeasuredFigure, ...]:
    """Return the figures of one series that end after a time, from its points in order."""
    found = []
    last: Any = None
    for point in points:
        known = last if last is not None and last.from_ms == point.from_ms else None
        begin_ms = known.until_ms if known else point.from_ms
        if point.until_ms > max(begin_ms, since_ms):
            found.append(_figure(point, known, begin_ms))
        last = point
    return tuple(found)


def _figure(point: Any, known: Any, begin_ms: int) -> MeasuredFigure:
    waits = tuple(_grown(point, known, f"{cause}_ms") for cause in WAIT_CAUSES) if point.turn_ms is not None else ()
    used_ms = _grown(point, known, "used_ms")
    return MeasuredFigure(begin_ms, point.until_ms, used_ms, point.used_mib, waits, point.celsius, point.watts)


def _grown(point: Any, known: Any, name: str) -> int:
    before = (getattr(known, name) if known else 0) or 0
    return max(0, (getattr(point, name) or 0) - before)


def _containers(connection: Connection, since_ms: int, until_ms: int, chosen: Chosen) -> PodSeries:
    joined = select(*_NAME, SeriesRow.container, SeriesRow.gpu, *_POINT).join_from(
        PointRow, SeriesRow, SeriesRow.id == PointRow.series_id
    )
    joined = joined.join(PodRow, (PodRow.uid == SeriesRow.pod_uid) & (PodRow.node == SeriesRow.node))
    points = joined.where(*chosen(SeriesRow), *_period(since_ms, until_ms)).order_by(*_ORDER).limit(MAX_POINTS + 1)
    found = connection.execute(points).all()
    fine: dict[Name, tuple[MeasuredFigure, ...]] = {}
    for _, group in groupby(found[:MAX_POINTS], attrgetter("series_id")):
        rows = list(group)
        fine[_name(rows[0])] = figures(rows, since_ms)
    coarse = _hours(connection, since_ms, until_ms, chosen)
    series = tuple(
        ContainerSeries(*name, _joined(coarse.get(name, ()), fine.get(name, ())))
        for name in sorted(fine.keys() | coarse.keys())
    )
    return PodSeries(series, is_complete=len(found) <= MAX_POINTS)


def _joined(coarse: Sequence[MeasuredFigure], fine: Sequence[MeasuredFigure]) -> tuple[MeasuredFigure, ...]:
    """Return hourly figures up to the first finer one, and the finer ones."""
    first_ms = fine[0].from_ms if fine else None
    return (*(hour for hour in coarse if first_ms is None or hour.until_ms <= first_ms), *fine)


def _hours(connection: Connection, since_ms: int, until_ms: int, chosen: Chosen) -> dict[Name, list[MeasuredFigure]]:
    """Return the periods of an hour at most that nodes reported."""
    columns = (
        *_NAME,
        UsedRow.container,
        UsedRow.gpu,
        UsedRow.from_ms,
        UsedRow.until_ms,
        UsedRow.gpu_ms,
        UsedRow.peak_mib,
    )
    joined = select(*columns).join_from(
        UsedRow, PodRow, (PodRow.uid == UsedRow.pod_uid) & (PodRow.node == UsedRow.node)
    )
    period = (UsedRow.until_ms > since_ms, UsedRow.until_ms <= until_ms)
    rows = joined.where(*chosen(UsedRow), *period).order_by(UsedRow.from_ms).limit(MAX_POINTS)
    found: dict[Name, list[MeasuredFigure]] = {}
    for row in connection.execute(rows):
        found.setdefault(_name(row), []).append(MeasuredFigure(row.from_ms, row.until_ms, row.gpu_ms, row.peak_mib))
    return found


def _card_hours(
    connection: Connection, node: NodeName, gpu: CardUuid, since_ms: int, until_ms: int
) -> tuple[MeasuredFigure, ...]:
    """Return what the containers of a card used in each hour of a time, together."""
    hour = (UsedRow.from_ms - UsedRow.from_ms % HOUR_MS).label("hour")
    rows = (
        select(hour, func.sum(UsedRow.gpu_ms).label("used_ms"))
        .where(UsedRow.node == node, UsedRow.gpu == gpu, UsedRow.until_ms > since_ms, UsedRow.until_ms <= until_ms)
        .group_by(hour)
        .order_by(hour)
        .limit(MAX_POINTS)
    )
    return tuple(MeasuredFigure(row.hour, row.hour + HOUR_MS, int(row.used_ms)) for row in connection.execute(rows))


def _name(row: Any) -> Name:
    return row.namespace, row.name, row.container, row.gpu


def _period(since_ms: int, until_ms: int) -> tuple[ColumnElement[bool], ...]:
    """Return the conditions of the points of a time, with the hour before it, in which their periods begin."""
    first = max(0, since_ms - HOUR_MS) // SLOT_MS
    return PointRow.slot >= first, PointRow.slot <= until_ms // SLOT_MS, PointRow.until_ms <= until_ms


_ORDER: Final = (PointRow.series_id, PointRow.from_ms, PointRow.until_ms)
