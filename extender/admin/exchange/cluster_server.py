"""Answers the admin's process, in the extender's: what it asks of the cluster, over a socket that both inherit.

Writing a pickle holds the interpreter's lock and the verbs' event loop, so what has changed goes in pieces, and the
loop rests for 1 ms after each half millisecond of work. A piece with 16 objects takes half a millisecond too.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from extender.admin.exchange import pickle_frames
from extender.admin.exchange.messages import Acted, AskGangs, AskRequests, AskReserved, Failed, Serving, TakeSnapshot
from extender.admin.exchange.snapshots import REST_S, SLICE_S, ChangeSource, SnapshotNotReady
from extender.admin.security.audit import AuditedAction

log = logging.getLogger(__name__)


class ClusterServer:
    """Answers one process, from its start. `clock` is monotonic, in seconds; `acted` takes each admin action.

    `serving` takes the hash of the process's certificate.
    """

    def __init__(
        self,
        source: ChangeSource,
        clock: Callable[[], float],
        acted: Callable[[AuditedAction], None],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        serving: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._source = source
        self._clock = clock
        self._acted = acted
        self._serving = serving
        self._sleep = sleep

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer until the process closes its end."""
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                question = await pickle_frames.receive(reader)
                if isinstance(question, Acted):
                    self._acted(question.action)
                elif isinstance(question, Serving):
                    self._serving(question.certificate_sha256)
                else:
                    await self._answer(question, writer)

    async def _answer(self, question: object, writer: asyncio.StreamWriter) -> None:
        try:
            if isinstance(question, TakeSnapshot):
                await self._send_snapshot(writer)
                return
            answer: Any = await self._found(question)
        except SnapshotNotReady as error:
            answer = Failed(str(error))
        writer.write(pickle_frames.encode(answer))
        await writer.drain()

    async def _found(self, question: object) -> Any:
        match question:
            case AskReserved(pod):
                return await self._source.reserved(pod)
            case AskGangs(keys):
                return await self._source.why_gangs_wait(keys)
            case AskRequests(pods):
                return await self._source.requests(pods)
        raise TypeError(f"no question of the admin's process: {type(question).__name__}")

    async def _send_snapshot(self, writer: asyncio.StreamWriter) -> None:
        changes = await self._source.changes()
        began = self._clock()
        for frame in changes:
            if frame is not None:
                writer.write(pickle_frames.encode(frame))
                await writer.drain()
            if self._clock() - began > SLICE_S:
                await self._sleep(REST_S)
                began = self._clock()
