"""The admin's process, started and ended by the extender: `python -m extender.admin`.

Its clients' requests, streams and lists cost the verbs neither the interpreter's lock nor collections of garbage, and
its file descriptors are its own. A failure there never ends the extender: the process is started again after a pause.
"""

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import Final

from extender.admin.exchange import pickle_frames
from extender.admin.exchange.child import AdminChild
from extender.admin.exchange.cluster_server import ClusterServer
from extender.admin.exchange.messages import StartMessage
from vgpu.adapters import child_process
from vgpu.adapters.child_process import ChildEnd, Restarts
from vgpu.pacing.back_off import BackOff

RESTARTS: Final = Restarts(  # the process needs a second of a processor to start
    BackOff(first_s=5.0, longest_s=60.0), steady_s=60.0
)
END_S: Final = 0.5  # for the requests in flight: the next extender places no pod until this one has ended

log = logging.getLogger(__name__)


class AdminProcess:
    """Runs the process with its settings, and answers it. `answers` makes what answers one process.

    `first` is the process where it was started already; it waits for its settings.
    """

    def __init__(
        self,
        start: StartMessage,
        log_level: str,
        answers: Callable[[], ClusterServer],
        first: AdminChild | None = None,
    ) -> None:
        self._start = start
        self._log_level = log_level
        self._answers = answers
        self._first = first
        self._is_running = False

    def is_running(self) -> bool:
        """Whether a process runs now, and has been given its settings."""
        return self._is_running

    async def run(self) -> None:
        """Keep the process running until cancelled; then close its socket, on which it ends."""
        await child_process.keep_running(self._once, RESTARTS, _report, clock=asyncio.get_running_loop().time)

    async def _once(self) -> int:
        """Run the process once; return its exit status."""
        child = self._first or await AdminChild.start(self._log_level)
        self._first = None
        with child.ours:
            try:
                await self._answer(child.ours)
            except Exception:
                log.exception("the admin process asked what cannot be answered")
            finally:
                child.ours.close()
                code = await child_process.ended(child.process, END_S)
            return code

    async def _answer(self, ours: socket.socket) -> None:
        reader, writer = await asyncio.open_connection(sock=ours)
        try:
            writer.write(pickle_frames.encode(self._start))
            self._is_running = True
            await self._answers().serve(reader, writer)
        finally:
            self._is_running = False
            writer.transport.abort()


def _report(end: ChildEnd, pause_s: float) -> None:
    log.warning("the admin process %s; it is started again in %.0f s", end, pause_s)
