"""Event streams: what has changed in the cluster, for live views. Bounded in number, in queue and in time.

While there are streams, snapshots are compared once a second, and each difference is encoded once for all streams. A
stream whose client reads slower than events come is ended, with the event `overflow`: the client reads the lists again.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final

import msgspec

from extender.admin.answers.listed import gpus, nodes, pods
from extender.admin.exchange import sent_objects
from extender.admin.exchange.snapshots import ClusterSnapshot
from extender.admin.problems import AdminProblem
from vgpu.domain.identifiers import NO_NAMESPACE, Namespace
from vgpu.placement.snapshot import NodeView

PERIOD_S: Final = 1.0
MAX_STREAMS: Final = 2_000
MAX_OF_CALLER: Final = 50
MAX_QUEUED: Final = 1_000  # events
EVENTS_PER_REST: Final = 200

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One event: its kind (pod, gpu, node), the pod's namespace, and the encoded frame."""

    kind: str
    namespace: Namespace
    frame: bytes


@dataclass(slots=True, eq=False)
class ClientStream:
    """One client's queue. `sees` says which changes the client gets."""

    caller: str
    sees: Callable[[StreamEvent], bool]
    queue: deque[StreamEvent] = field(default_factory=deque)
    is_full: bool = False
    woken: asyncio.Event = field(default_factory=asyncio.Event)

    def put(self, change: StreamEvent) -> None:
        """Queue a change that the client gets; after the queue was full once, nothing more."""
        if self.is_full or not self.sees(change):
            return
        if len(self.queue) >= MAX_QUEUED:
            self.is_full = True
            self.queue.clear()
        else:
            self.queue.append(change)
        self.woken.set()


class Streams:
    """All streams, and the task that feeds them while there are any."""

    def __init__(
        self,
        snapshot: Callable[[], Awaitable[ClusterSnapshot]],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        most: int = MAX_STREAMS,
    ) -> None:
        self._snapshot = snapshot
        self._sleep = sleep
        self._most = most
        self._streams: set[ClientStream] = set()
        self._feeding: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._streams)

    def open(self, caller: str, sees: Callable[[StreamEvent], bool], *, is_local: bool) -> ClientStream:
        """Add a stream. Raises AdminProblem where there are too many."""
        own = sum(open_stream.caller == caller for open_stream in self._streams)
        if len(self._streams) >= self._most or (own >= MAX_OF_CALLER and not is_local):
            detail = f"there are {own} event streams of yours, {len(self._streams)} in all; close some"
            raise AdminProblem(HTTPStatus.SERVICE_UNAVAILABLE, detail, headers={"Retry-After": "10"})
        stream = ClientStream(caller, sees)
        self._streams.add(stream)
        if self._feeding is None or self._feeding.done():
            self._feeding = asyncio.create_task(self._feed())
        return stream

    def close(self, stream: ClientStream) -> None:
        """Remove a stream."""
        self._streams.discard(stream)
        if not self._streams and self._feeding is not None:
            self._feeding.cancel()
            self._feeding = None

    async def _feed(self) -> None:
        before = await self._next(ClusterSnapshot(0))
        while True:
            await self._sleep(PERIOD_S)
            after = await self._next(before)
            for number, change in enumerate(changes(before, after), 1):
                for stream in self._streams:
                    stream.put(change)
                if number % EVENTS_PER_REST == 0:
                    await asyncio.sleep(0)
            before = after

    async def _next(self, known: ClusterSnapshot) -> ClusterSnapshot:
        """Return a new snapshot; the known one where there is none at present."""
        try:
            return await self._snapshot()
        except AdminProblem as problem:
            log.warning("event streams: %s", problem.detail)
            return known


def changes(before: ClusterSnapshot, after: ClusterSnapshot) -> Iterator[StreamEvent]:
    """Yield the differences between two snapshots."""
    if before.number == after.number:
        return
    yield from _pod_changes(before, after)
    for name, view in after.views.items():
        yield from _node_changes(before.views.get(name), view, before, after)
    for name in before.views.keys() - after.views.keys():
        yield _change("node", NO_NAMESPACE, "DELETED", {"name": name})
        for card in before.views[name].state.cards:
            if after.node_of_card.get(card.card.uuid, name) == name:
                yield _change("gpu", NO_NAMESPACE, "DELETED", {"uuid": card.card.uuid, "node": name})


def _pod_changes(before: ClusterSnapshot, after: ClusterSnapshot) -> Iterator[StreamEvent]:
    for uid, pod in after.pods.items():
        known = before.pods.get(uid)
        if known is not pod and known != pod and pod.asks_for_cards:
            kind = "ADDED" if known is None else "MODIFIED"
            yield _change("pod", pod.namespace, kind, pods.row(pod, after))
    for uid in before.pods.keys() - after.pods.keys():
        pod = before.pods[uid]
        if not pod.asks_for_cards:
            continue
        gone = {"uid": uid, "namespace": pod.namespace, "name": pod.name}
        yield _change("pod", pod.namespace, "DELETED", gone)


def _node_changes(
    known: NodeView | None, view: NodeView, before: ClusterSnapshot, after: ClusterSnapshot
) -> Iterator[StreamEvent]:
    if known is not None and sent_objects.is_same_view(known, view):
        return
    kind = "ADDED" if known is None else "MODIFIED"
    row = nodes.row(view, after)
    if known is None or nodes.row(known, before) != row:
        yield _change("node", NO_NAMESPACE, kind, row)
    cards = {card.card.uuid: card for card in known.state.cards} if known is not None else {}
    for state in view.state.cards:
        old = cards.pop(state.card.uuid, None)
        gpu = gpus.row(view, state, after)
        if known is None or old is None or gpus.row(known, old, before) != gpu:
            yield _change("gpu", NO_NAMESPACE, "ADDED" if old is None else "MODIFIED", gpu)
    for uuid in cards:
        yield _change("gpu", NO_NAMESPACE, "DELETED", {"uuid": uuid, "node": view.name})


def _change(kind: str, namespace: Namespace, type_: str, row: Mapping[str, Any]) -> StreamEvent:
    data = msgspec.json.encode({"type": type_, "object": row})
    return StreamEvent(kind, namespace, b"event: " + kind.encode() + b"\ndata: " + data + b"\n\n")
