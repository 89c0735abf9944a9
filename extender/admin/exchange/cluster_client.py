"""The admin's side of its socket to the extender: asks what the verbs' process knows of the cluster."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Collection, Sequence
from http import HTTPStatus
from typing import Any, Final, TypeVar

from extender.admin.exchange import pickle_frames
from extender.admin.exchange.messages import (
    Acted,
    AskGangs,
    AskRequests,
    AskReserved,
    Failed,
    Piece,
    Serving,
    TakeSnapshot,
)
from extender.admin.exchange.mirror import Mirror
from extender.admin.exchange.snapshots import READY_S, ClusterSnapshot, SnapshotNotReady, WaitingGangs
from extender.admin.problems import AdminProblem
from extender.admin.security.audit import AuditedAction
from extender.state.gang_members import GangKey
from extender.state.objects import WatchedPod
from vgpu.domain.asks.request import PodRequest
from vgpu.domain.identifiers import NodeName
from vgpu.placement.choose import NodeRefusal

FRAME_S: Final = READY_S + 5.0  # the longest wait for the next frame
PODS_PER_QUESTION: Final = 16

T = TypeVar("T")


class ClusterClient:
    """One question at a time. After an error the socket is closed: a late answer would be taken for another one.

    The extender starts the process again when it sees the end of the socket.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, frame_s: float = FRAME_S) -> None:
        """`frame_s` is the longest wait for the next frame, in seconds."""
        self._frame_s = frame_s
        self._reader = reader
        self._writer = writer
        self._lock = asyncio.Lock()
        self._mirror = Mirror()
        self._received = asyncio.Queue[Any]()

    async def run(self) -> None:
        """Receive until the extender closes its end, or the socket is closed here."""
        try:
            while True:
                self._received.put_nowait(await pickle_frames.receive(self._reader))
        except (asyncio.IncompleteReadError, ConnectionError):
            self._writer.close()

    async def take(self) -> ClusterSnapshot:
        """Return a new snapshot. Raises SnapshotNotReady; AdminProblem: 503, the extender does not answer."""
        return await self._undisturbed(self._take)

    async def reserved(self, pod: WatchedPod) -> dict[NodeName, NodeRefusal]:
        """Return the refusals of nodes where cards are reserved for other pods."""
        found: dict[NodeName, NodeRefusal] = await self._ask(AskReserved(pod))
        return found

    async def why_gangs_wait(self, keys: Collection[GangKey]) -> WaitingGangs:
        """Return why gangs wait; those that do not wait are left out."""
        found: WaitingGangs = await self._ask(AskGangs(keys)) if keys else {}
        return found

    async def requests(self, pods: Sequence[WatchedPod]) -> list[PodRequest | None]:
        """Return what pods ask for beside the pods that are on cards now; asked in pieces, to bound each answer."""
        found: list[PodRequest | None] = []
        rest = iter(pods)
        while piece := list(itertools.islice(rest, PODS_PER_QUESTION)):
            found += await self._ask(AskRequests(piece))
        return found

    def acted(self, action: AuditedAction) -> None:
        """Tell of an admin action."""
        self._writer.write(pickle_frames.encode(Acted(action)))

    def serving(self, certificate_sha256: str) -> None:
        """Tell that the process has its certificate; an empty text without TLS."""
        self._writer.write(pickle_frames.encode(Serving(certificate_sha256)))

    async def _ask(self, question: object) -> Any:
        async def exchange() -> Any:
            await self._send(question)
            return await self._next()

        return await self._undisturbed(exchange)

    async def _take(self) -> ClusterSnapshot:
        await self._send(TakeSnapshot())
        while isinstance(frame := await self._next(), Piece):
            self._mirror.apply(frame)
        return self._mirror.take(frame)

    async def _undisturbed(self, exchange: Callable[[], Awaitable[T]]) -> T:
        """Run an exchange to its end, also where the client has gone that caused it."""

        async def alone() -> T:
            async with self._lock:
                try:
                    return await exchange()
                except (TimeoutError, ConnectionError):
                    self._writer.close()
                    raise _unavailable() from None

        return await asyncio.shield(asyncio.create_task(alone()))

    async def _send(self, question: object) -> None:
        if self._writer.is_closing():
            raise ConnectionError
        self._writer.write(pickle_frames.encode(question))
        await self._writer.drain()

    async def _next(self) -> Any:
        async with asyncio.timeout(self._frame_s):
            frame = await self._received.get()
        if isinstance(frame, Failed):
            raise SnapshotNotReady(frame.detail)
        return frame


def _unavailable() -> AdminProblem:
    detail = "the extender does not answer; its admin process starts again"
    return AdminProblem(HTTPStatus.SERVICE_UNAVAILABLE, detail, headers={"Retry-After": "5"})
