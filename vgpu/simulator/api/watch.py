"""Watches: the log of one resource's changes, filtered by a selection, as JSON lines.

https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes
"""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from vgpu.domain.json_types import JsonObject
from vgpu.simulator.api import wire
from vgpu.simulator.api.resources import Target
from vgpu.simulator.api.selectors import Matches
from vgpu.simulator.api.store import ObjectChange, Store, TooOld

BOOKMARK_S: Final = 10.0
INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"


@dataclass(frozen=True, slots=True)
class WatchRequest:
    """What a client asks for.

    Attributes:
        target: the collection, of one namespace or all.
        matches: the selection.
        version: the last version that the client has seen; None to begin with all objects as ADDED.
        bookmarks: whether to send BOOKMARK events.
        initial_end: whether to send a marked bookmark after the initial objects (`sendInitialEvents`).
        timeout_s: end the watch after this many seconds.
    """

    target: Target
    matches: Matches
    version: int | None
    bookmarks: bool
    initial_end: bool
    timeout_s: float


async def lines(
    store: Store,
    request: WatchRequest,
    clock: Callable[[], float],
    shown: Callable[[JsonObject], JsonObject] | None = None,
) -> AsyncIterator[bytes]:
    """Yield events until the timeout, the end of the store, or an ERROR event for a version that is too old.

    `clock` is monotonic, in seconds. `shown` returns the form in which the client asks for an object.
    """
    version, end = request.version, clock() + request.timeout_s
    if version is None:
        version, first = store.version, _initial(store, request, shown)
        for line in first:
            yield line
    try:
        while not store.closed and (left := end - clock()) > 0:
            changes, version = store.since(request.target.resource.name, version), store.version
            for kind, obj in filter(None, (seen(change, request) for change in changes)):
                yield _line(kind, shown(obj) if shown else obj)
            if not changes:
                await store.wait(request.target.resource.name, version, min(BOOKMARK_S, left))
                for line in _bookmarks(request, version):
                    yield line
    except TooOld as error:
        yield _line("ERROR", wire.failure(error))


def _initial(store: Store, request: WatchRequest, shown: Callable[[JsonObject], JsonObject] | None) -> list[bytes]:
    objects = store.objects(request.target.resource.name, request.target.namespace)
    found = [_line("ADDED", shown(obj) if shown else obj) for obj in objects if request.matches(obj)]
    if request.initial_end:
        marked = _bookmark(request.target, store.version)
        marked["metadata"]["annotations"] = {INITIAL_EVENTS_END: "true"}
        found.append(_line("BOOKMARK", marked))
    return found


def seen(change: ObjectChange, request: WatchRequest) -> tuple[str, JsonObject] | None:
    """Return the event of a change for a selection: an object that leaves it is DELETED, one that enters it ADDED."""
    if request.target.namespace not in ("", change.key[0]):
        return None
    before = change.before is not None and request.matches(change.before)
    after = change.after is not None and request.matches(change.after)
    match before, after:
        case True, True:
            return "MODIFIED", change.last
        case False, True:
            return "ADDED", change.last
        case True, False:
            return "DELETED", _stamped(change)
        case _:
            return None


def _stamped(change: ObjectChange) -> JsonObject:
    """Return the last object of the selection, with the version at which it left the selection."""
    before = change.before or change.last
    return {**before, "metadata": {**before["metadata"], "resourceVersion": str(change.version)}}


def _bookmarks(request: WatchRequest, version: int) -> list[bytes]:
    return [_line("BOOKMARK", _bookmark(request.target, version))] if request.bookmarks else []


def _bookmark(target: Target, version: int) -> JsonObject:
    resource = target.resource
    return {
        "kind": resource.kind,
        "apiVersion": resource.api_version,
        "metadata": {"resourceVersion": str(version), "creationTimestamp": None},
    }


def _line(kind: str, obj: Any) -> bytes:
    return msgspec.json.encode({"type": kind, "object": obj}) + b"\n"
