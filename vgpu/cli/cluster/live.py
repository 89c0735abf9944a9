"""Live lists: reads the list, then applies events. After a lost connection, and after `overflow`, it is read again."""

from collections.abc import Callable, Iterator
from typing import Any, Final

from vgpu.cli.cluster.connection.rest import Rest
from vgpu.cli.failure import NO_ANSWER, CommandFailed
from vgpu.pacing.back_off import BackOff

Row = dict[str, Any]
RowId = tuple[str, ...]
KEYS: Final = {"pod": ("namespace", "name"), "gpu": ("node", "index"), "node": ("name",)}
IDS: Final = {"pod": ("uid",), "gpu": ("node", "uuid"), "node": ("name",)}  # two nodes may report one card
RETRIES: Final = BackOff(first_s=1.0, longest_s=30.0)


def watch(
    rest: Rest,
    kind: str,
    read: Callable[[], list[Row]],
    query: dict[str, Any],
    sleep: Callable[[float], None],
) -> Iterator[list[Row]]:
    """Yield the rows, and again after each change, until the caller stops.

    `read` reads the whole list. A stream is opened before the list is read, so that no change is missed. Raises
    CommandFailed where the first answer does not come, or a right is missing.
    """
    failures = 0
    while True:
        try:
            for rows in _once(rest, kind, read, query):
                failures = 0
                yield rows
        except CommandFailed as error:
            if error.code != NO_ANSWER or failures == 0:
                raise
        failures += 1
        sleep(RETRIES.delay_s(failures))


def _once(rest: Rest, kind: str, read: Callable[[], list[Row]], query: dict[str, Any]) -> Iterator[list[Row]]:
    """Yield rows until the stream ends."""
    known: dict[RowId, Row] = {}
    for event, data in rest.events("/events", {"kind": kind, **query}):
        if event in ("open", "heartbeat"):  # no event says what is used
            known = {identity(kind, row): row for row in read()}
        elif event == kind:
            apply(known, kind, data)
        else:  # overflow, expired
            return
        yield sorted(known.values(), key=lambda row: [row[name] for name in KEYS[kind]])


def identity(kind: str, row: Row) -> RowId:
    """Return what names a row."""
    return tuple(str(row[name]) for name in IDS[kind])


def apply(known: dict[RowId, Row], kind: str, event: Row) -> None:
    """Apply one event to the rows by ID. Fields that the event does not have stay as they were."""
    row = event["object"]
    name = identity(kind, row)
    if event["type"] == "DELETED":
        known.pop(name, None)
    else:
        known[name] = {**known.get(name, {}), **row}
