"""List-and-watch: keeps a handler up to date with all objects of one kind.

The reflector lists in pages, then watches from the list's resourceVersion with bookmarks. A watch that ends, or whose
connection breaks, or that the API server refuses because it is busy (429, 503), is continued from the last version seen
after a back-off with jitter, no earlier than Retry-After asks. Only where the API server no longer knows the version
(410 Gone, or a version newer than its own after a restored backup), the reflector lists again and passes the fresh list
to the handler's `replace`, which also removes what was deleted between two watches. A list that is interrupted goes on
with the page that failed. While the API server cannot be reached, the handler keeps what it has. An object that
cannot be read is logged, counted in `unreadable` and skipped: the handler keeps the last version that could be read.

The protocol: https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes
"""

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any, Final, Protocol

import msgspec

from vgpu.adapters import deep_json
from vgpu.adapters.kubernetes.client import KubernetesClient
from vgpu.domain.errors import KubernetesError
from vgpu.pacing.back_off import BackOff

PAGE: Final = 500  # objects in a page of a list; fewer where they are longer than MAX_PAGE together
MAX_PAGE: Final = 48 << 20  # bytes: users write objects of 1.5 MB, and 500 of them would fill this process's memory
WATCH_S: Final = 300  # the server ends a watch after this long; a fresh one follows
SILENCE_S: Final = 120.0  # the API server sends a bookmark about each minute, of most kinds: see `_watch`
_CHANGES: Final = frozenset({"ADDED", "MODIFIED", "DELETED"})
PAUSE_S: Final = 0.1  # between two watches: spares a server that ends each watch at once
BACK_OFF: Final = BackOff(first_s=0.1, longest_s=5.0, jitter=0.5)

log = logging.getLogger(__name__)


def _is_unknown_version(error: KubernetesError) -> bool:
    """Whether the API server cannot continue from the version: too old, or of a time that a restore has undone."""
    return error.status == HTTPStatus.GONE or "Too large resource version" in error.message


class ObjectHandler(Protocol):
    """Receives the objects. Called from the event loop, in order, never concurrently."""

    def replace(self, objects: list[Any], version: str) -> None:
        """Take all objects that existed at a resourceVersion."""

    def upsert(self, obj: Any) -> None:
        """Take an object that is new or changed."""

    def delete(self, obj: Any) -> None:
        """Take the deletion of an object, given in its last version."""


class _Meta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")


class _Page(msgspec.Struct):
    metadata: _Meta
    items: list[msgspec.Raw]


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Stamped(msgspec.Struct):
    """What every watched object carries; an ERROR event carries a Status with a code instead."""

    metadata: _Meta = msgspec.field(default_factory=_Meta)
    code: int = 0
    message: str = ""


class _Named(msgspec.Struct):
    """For the log: whose object cannot be read."""

    metadata: dict[str, msgspec.Raw]


UNREADABLE: Final = object()  # in place of an object

_decode_page = msgspec.json.Decoder(_Page).decode
_decode_event = msgspec.json.Decoder(_Event).decode
_decode_stamp = msgspec.json.Decoder(_Stamped).decode
_decode_named = msgspec.json.Decoder(_Named).decode


class Reflector:
    """Keeps one handler up to date until cancelled."""

    def __init__(
        self,
        client: KubernetesClient,
        path: str,
        handler: ObjectHandler,
        *,
        jitter: Callable[[], float],
        params: Mapping[str, str] | None = None,
        decode: Callable[[bytes], Any] = msgspec.json.decode,
        silence_s: float = SILENCE_S,
        absent_s: float | None = None,
        is_never_quiet: bool = False,
        max_page: int = MAX_PAGE,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Watch `path` narrowed by `params`; `decode` makes an object of its JSON.

        `jitter` returns a random number from 0 to 1: it spreads the retries of many clients. A watch without a byte for
        `silence_s` is a failed connection. `absent_s` is for a kind that the API server may not know: it has no objects
        then, and is asked for again after as many seconds. Where a kind `is_never_quiet`, some object changes every few
        seconds: an API server that takes the watch and sends nothing is not heard then. A page of a list has one object
        or at most `max_page` bytes.
        """
        self._client = client
        self._path = path
        self.handler = handler
        self._jitter = jitter
        self._params = dict(params or {})
        self._decode = decode
        self._sleep = sleep
        self._silence_s = silence_s
        self._absent_s = absent_s
        self._is_never_quiet = is_never_quiet
        self._max_page = max_page
        self._version = ""
        self._seen: msgspec.Raw | None = None  # the watch's last object, which has a newer version
        self._token = ""  # of the next page, where a list was interrupted
        self._listed: list[Any] = []
        self._listing = 0
        self._failures = 0  # in a row
        self._lists_wanted = 0
        self._watching: asyncio.Task[None] | None = None
        self.synced = asyncio.Event()
        self.unreadable = 0
        self.heard_at: float | None = None  # the event loop's time in seconds

    async def run(self) -> None:
        """List and watch until cancelled."""
        while True:
            try:
                if not self._version:
                    await self._list()
                if self._version:
                    await self._watch_or_relist()
                await self._sleep(PAUSE_S)
            except (KubernetesError, msgspec.DecodeError) as error:
                await self._wait_after(error)

    async def _wait_after(self, error: KubernetesError | msgspec.DecodeError) -> None:
        asked = 0.0
        if isinstance(error, KubernetesError):
            asked = error.retry_after_s
            if self._absent_s is not None and error.status == HTTPStatus.NOT_FOUND:
                await self._wait_for_kind(self._absent_s)
                return
            if _is_unknown_version(error):
                self._start_over()
        self._failures += 1
        pause = asked + BACK_OFF.delay_s(self._failures, self._jitter())
        log.warning("%s: %s; again in %.1f s", self._path, error, pause)
        await self._sleep(pause)

    async def _wait_for_kind(self, seconds: float) -> None:
        """Take an empty list of a kind that the API server does not know, and wait."""
        if not self.synced.is_set() or self._version:
            log.info("%s: the API server has no such kind; asked again every %.0f s", self._path, seconds)
        self._start_over()
        self._hear()
        self.handler.replace([], "")
        self.synced.set()
        await self._sleep(seconds)

    def _start_over(self) -> None:
        """List again before the next watch."""
        self._version = self._token = ""
        self._seen = None

    async def relist(self) -> None:
        """List again, and return when the handler has a list that was requested after this call."""
        self.synced.clear()
        self._start_over()
        self._lists_wanted += 1
        if self._watching is not None:
            self._watching.cancel()
        await self.synced.wait()

    async def _watch_or_relist(self) -> None:
        self._watching = asyncio.create_task(self._watch())
        try:
            await self._watching
        except asyncio.CancelledError:
            own = asyncio.current_task()
            if own is not None and own.cancelling():  # this reflector is cancelled, not asked to list again
                self._watching.cancel()
                raise
        finally:
            self._watching = None

    async def _list(self) -> None:
        if not self._token:
            self._listed, self._listing = [], self._lists_wanted
        wanted, size = self._listing, PAGE
        while True:
            params = {**self._params, "limit": str(size)} | ({"continue": self._token} if self._token else {})
            data = await self._client.page(self._path, params, self._max_page if size > 1 else sys.maxsize)
            if data is None:
                size = max(1, size // 4)
                continue
            page = await deep_json.decode(_decode_page, data)
            read = [await deep_json.decode(self._read, item) for item in page.items]
            self._listed += [obj for obj in read if obj is not UNREADABLE]
            self._token = page.metadata.continue_
            if not self._token:
                break
        objects, self._listed = self._listed, []
        self._hear()
        self.handler.replace(objects, page.metadata.resource_version)
        if wanted == self._lists_wanted:
            self._version = page.metadata.resource_version
            self.synced.set()

    async def _watch(self) -> None:
        params = {
            **self._params,
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._last_version(),
            "timeoutSeconds": str(WATCH_S),
        }
        async for lines in self._client.stream(self._path, params, silence_s=self._silence_s):
            # An API server that takes the watch sends at once what has changed since the version: an empty list of
            # lines means that nothing has. It may be all that ever comes: where etcd does not notify of its progress
            # (its own default is every 10 minutes), there is no bookmark of a kind without changes.
            if lines or not self._is_never_quiet:
                self._hear()
            for line in filter(None, lines):
                self._take(*await deep_json.decode(self._read_event, line))

    def _hear(self) -> None:
        self.heard_at = asyncio.get_running_loop().time()

    def _read_event(self, line: bytes) -> tuple[_Event, Any]:
        """Return an event and its object; UNREADABLE for an event without one."""
        event = _decode_event(line)
        return event, self._read(bytes(event.object)) if event.type in _CHANGES else UNREADABLE

    def _take(self, event: _Event, obj: Any) -> None:
        if event.type == "ERROR":
            status = _decode_stamp(event.object)
            raise KubernetesError(status.code or HTTPStatus.GONE, "Watch", status.message)
        if obj is not UNREADABLE and event.type == "DELETED":
            self.handler.delete(obj)
        elif obj is not UNREADABLE:
            self.handler.upsert(obj)
        self._seen = event.object
        self._failures = 0

    def _last_version(self) -> str:
        """Return the version to continue from: that of the last object. Versions of the others are never looked for."""
        seen, self._seen = self._seen, None
        if seen is not None:
            self._version = _decode_stamp(seen).metadata.resource_version
        return self._version

    def _read(self, data: bytes) -> Any:
        """Return the object, or UNREADABLE: an object of one user must not end the watch of all objects.

        Raises RecursionError for what is too deep for the parser.
        """
        try:
            return self._decode(data)
        except RecursionError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever the decoder raises is about this object alone
            self.unreadable += 1
            log.warning("%s: %s cannot be read and is skipped: %s", self._path, _name(data), error)
            return UNREADABLE


def _name(raw: bytes) -> str:
    """Return namespace, name and UID of an object for the log, as far as they can be read."""
    try:
        metadata = _decode_named(raw).metadata
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return "an object"
    found = (
        bytes(metadata[key])[:300].decode(errors="replace") for key in ("namespace", "name", "uid") if key in metadata
    )
    return " ".join(found)
