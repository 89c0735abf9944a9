"""The list of events: filtered by SQL, the latest first, in pages that continue where the last one ended."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, or_, select, tuple_

from extender.history.recording.events import EventKind
from extender.history.reporting.reports import EntryPage, HistoryEntry, HistoryFilters
from extender.history.storage import journal
from extender.history.storage.tables import CardRow, EventRow, HoldingRow
from vgpu.domain.errors import MalformedCursor
from vgpu.domain.identifiers import CardUuid

MAX_LIMIT: Final = 1_000
MAX_DIGITS: Final = 18

_ORDER: Final = (EventRow.at_ms, EventRow.id)


def page(connection: Connection, filters: HistoryFilters, cursor: str, limit: int) -> EntryPage:
    """Return a page.

    Raises:
        MalformedCursor: `cursor` is not what a page returned.
    """
    limit = max(1, min(limit, MAX_LIMIT))
    columns = (EventRow.id, EventRow.at_ms, EventRow.kind, EventRow.namespace, EventRow.payload)
    chosen = select(*columns).where(*_conditions(filters), *_after(cursor))
    ordered = chosen.order_by(*(column.desc() for column in _ORDER)).limit(limit + 1)
    found = connection.execute(ordered).all()
    entries = [
        HistoryEntry(row.id, row.at_ms, EventKind(row.kind), row.namespace, journal.event(row)) for row in found[:limit]
    ]
    return EntryPage(tuple(entries), _cursor(found, limit))


def _cursor(found: Sequence[Any], limit: int) -> str:
    return f"{found[limit - 1].at_ms}.{found[limit - 1].id}" if len(found) > limit else ""


def _after(cursor: str) -> Iterator[ColumnElement[bool]]:
    if not cursor:
        return
    at_ms, _, number = cursor.partition(".")
    if not _is_number(at_ms) or not _is_number(number):
        raise MalformedCursor(f"cursor: {cursor[:40]!r} is not what the last page returned")
    yield tuple_(*_ORDER) < tuple_(int(at_ms), int(number))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS


def _conditions(filters: HistoryFilters) -> Iterator[ColumnElement[bool]]:
    if filters.kinds is not None:
        yield EventRow.kind.in_(sorted(filters.kinds))
    if filters.namespaces is not None:
        yield EventRow.namespace.in_(sorted(filters.namespaces))
    for column, value in (
        (EventRow.pod, filters.pod),
        (EventRow.pod_uid, filters.pod_uid),
        (EventRow.node, filters.node),
    ):
        if value is not None:
            yield column == value
    if filters.gpu is not None:
        yield _about_card(filters.gpu)
    if filters.since_ms is not None:
        yield EventRow.at_ms >= filters.since_ms
    if filters.until_ms is not None:
        yield EventRow.at_ms < filters.until_ms


def _about_card(gpu: CardUuid) -> ColumnElement[bool]:
    """Events of the card itself, and of every pod that held it."""
    holders = select(HoldingRow.pod_uid).join(CardRow, CardRow.id == HoldingRow.card_id).where(CardRow.gpu == gpu)
    return or_(EventRow.gpu == gpu, EventRow.pod_uid.in_(holders))
