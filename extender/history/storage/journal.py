"""Events as rows of the journal, and back."""

import hashlib
from collections.abc import Iterable
from typing import Any, Final

from sqlalchemy import Connection, select

from extender.history.recording import events, lines
from extender.history.recording.events import AdminAction, CardEvent, Event, EventKind, Gap, Resize
from extender.history.storage import statements
from extender.history.storage.tables import EventRow
from vgpu.domain.identifiers import PodUid

KEY_BYTES: Final = 16
USAGE_KINDS: Final = (EventKind.DECISION, EventKind.END, EventKind.RESIZE)  # what a pod's usage is derived from


def write(connection: Connection, added: Iterable[Event]) -> None:
    """Insert events; of one that exists the version of the higher rank is kept."""
    statements.replace(connection, EventRow.__table__, [row(record) for record in added], "key", keep="rank")


def row(event: Event) -> dict[str, Any]:
    """Return the columns of an event."""
    return {
        "key": key(event),
        "rank": event.rank(),
        "kind": events.KINDS[type(event)],
        "at_ms": event.at_ms,
        **_found_by(event),
        "payload": lines.payload(event).decode(),
    }


def key(event: Event) -> bytes:
    """Return the digest of an event's kind and key."""
    text = "\x1f".join((events.KINDS[type(event)], *event.key()))
    return hashlib.blake2b(text.encode(), digest_size=KEY_BYTES).digest()


def event(found: Any) -> Event:
    """Read a row with the columns `kind` and `payload`.

    Raises:
        MalformedEvent: the row was changed by someone else.
    """
    read: Event = lines.from_payload(found.kind, found.payload)
    return read


def usage_events(connection: Connection, uids: Iterable[PodUid]) -> dict[str, list[Event]]:
    """Return the events from which the usage of these pods is derived, by UID."""
    columns = select(EventRow.pod_uid, EventRow.kind, EventRow.payload)
    chosen = columns.where(EventRow.pod_uid.in_(list(uids)), EventRow.kind.in_(USAGE_KINDS)).order_by(EventRow.id)
    found: dict[str, list[Event]] = {}
    for row in connection.execute(chosen):
        found.setdefault(row.pod_uid, []).append(event(row))
    return found


def _found_by(event: Event) -> dict[str, str]:
    """Return the columns that events are filtered by, empty where an event has no such thing."""
    if isinstance(event, CardEvent | AdminAction):
        return {"namespace": "", "pod_uid": "", "pod": "", "node": event.node, "gpu": event.gpu}
    if isinstance(event, Gap):
        return {"namespace": "", "pod_uid": "", "pod": "", "node": "", "gpu": ""}
    node = getattr(event, "node", "")  # Refusals are about no node
    gpu = event.share.gpu if isinstance(event, Resize) else ""
    return {"namespace": event.pod.namespace, "pod_uid": event.pod.uid, "pod": event.pod.name, "node": node, "gpu": gpu}
