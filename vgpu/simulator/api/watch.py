"""A watch: the log of one resource's changes, as one watcher's selection sees it, as JSON lines.

https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes
"""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from vgpu.simulator.api import wire
from vgpu.simulator.api.resources import Json, Target
from vgpu.simulator.api.selectors import Matches
from vgpu.simulator.api.store import Change, Store, TooOld

BOOKMARK_S: Final = 10.0
INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"


@dataclass(frozen=True, slots=True)
class Wish:
    """What a watcher asks for.

    Attributes:
        target: the collection; its namespace narrows it.
        matches: the selection.
        version: go on after this one; None starts with everything there is, as ADDED.
        bookmarks: send BOOKMARK events.
        initial_end: send a marked bookmark after everything there is (`sendInitialEvents`).
        timeout_s: end the watch after this many seconds.
    """

    target: Target
    matches: Matches
    version: int | None
    bookmarks: bool
    initial_end: bool
    timeout_s: float


async def lines(store: Store, wish: Wish, clock: Callable[[], float]) -> AsyncIterator[bytes]:
    """Yield events until the time is over, the store is closed, or the watcher has fallen behind (an ERROR event).

    `clock` gives monotonic seconds.
    """
    version, end = wish.version, clock() + wish.timeout_s
    if version is None:
        version, first = store.version, _initial(store, wish)
        for line in first:
            yield line
    try:
        while not store.closed and (left := end - clock()) > 0:
            changes, version = store.since(wish.target.resource.name, version), store.version
            for event in filter(None, (seen(change, wish) for change in changes)):
                yield _line(*event)
            if not changes:
                await store.wait(wish.target.resource.name, version, min(BOOKMARK_S, left))
                for line in _bookmarks(wish, version):
                    yield line
    except TooOld as error:
        yield _line("ERROR", wire.failure(error))


def _initial(store: Store, wish: Wish) -> list[bytes]:
    objects = store.objects(wish.target.resource.name, wish.target.namespace)
    found = [_line("ADDED", obj) for obj in objects if wish.matches(obj)]
    if wish.initial_end:
        marked = _bookmark(wish.target, store.version)
        marked["metadata"]["annotations"] = {INITIAL_EVENTS_END: "true"}
        found.append(_line("BOOKMARK", marked))
    return found


def seen(change: Change, wish: Wish) -> tuple[str, Json] | None:
    """What a change looks like from inside the selection: what leaves it is deleted, what enters it added."""
    if wish.target.namespace not in ("", change.key[0]):
        return None
    before = change.before is not None and wish.matches(change.before)
    after = change.after is not None and wish.matches(change.after)
    match before, after:
        case True, True:
            return "MODIFIED", change.last
        case False, True:
            return "ADDED", change.last
        case True, False:
            return "DELETED", _stamped(change)
        case _:
            return None


def _stamped(change: Change) -> Json:
    """The object as the selection saw it last, with the version at which it left."""
    before = change.before or change.last
    return {**before, "metadata": {**before["metadata"], "resourceVersion": str(change.version)}}


def _bookmarks(wish: Wish, version: int) -> list[bytes]:
    return [_line("BOOKMARK", _bookmark(wish.target, version))] if wish.bookmarks else []


def _bookmark(target: Target, version: int) -> Json:
    resource = target.resource
    return {
        "kind": resource.kind,
        "apiVersion": resource.api_version,
        "metadata": {"resourceVersion": str(version), "creationTimestamp": None},
    }


def _line(kind: str, obj: Any) -> bytes:
    return msgspec.json.encode({"type": kind, "object": obj}) + b"\n"
