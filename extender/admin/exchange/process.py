"""The admin's process, started and ended by the extender: `python -m extender.admin`.

Its clients' requests, streams and lists cost the verbs neither the interpreter's lock nor collections of garbage, and
its file descriptors are its own. A failure there never ends the extender: the process is started again after a pause.
"""

import asyncio
import logging
import socket
import sys
from asyncio.subprocess import DEVNULL
from collections.abc import Callable
from typing import Final

from extender.admin.exchange import pickle_frames
from extender.admin.exchange.cluster_server import ClusterServer
from extender.admin.exchange.messages import StartMessage
from vgpu.adapters import child_process

AGAIN_S: Final = 5.0
LONGEST_AGAIN_S: Final = 60.0  # the process needs a second of a processor to start
END_S: Final = 4.0  # for the requests in flight

log = logging.getLogger(__name__)


class AdminProcess:
    """Runs the process with its settings, and answers it. `answers` makes what answers one process."""

    def __init__(self, start: StartMessage, log_level: str, answers: Callable[[], ClusterServer]) -> None:
        self._start = start
        self._log_level = log_level
        self._answers = answers

    async def run(self) -> None:
        """Keep the process running until cancelled; then close its socket, on which it ends."""
        pause_s, now = AGAIN_S, asyncio.get_running_loop().time
        while True:
            began = now()
            try:
                why = f"exited with code {await self._once()}"
            except OSError as error:
                why = f"cannot be started: {error}"
            pause_s = AGAIN_S if now() - began > LONGEST_AGAIN_S else pause_s
            log.warning("the admin process %s; it is started again in %.0f s", why, pause_s)
            await asyncio.sleep(pause_s)
            pause_s = min(LONGEST_AGAIN_S, 2 * pause_s)

    async def _once(self) -> int:
        """Run the process once; return its exit status."""
        ours, theirs = socket.socketpair()
        with ours, theirs:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "extender.admin", str(theirs.fileno()), self._log_level,
                stdin=DEVNULL, pass_fds=(theirs.fileno(),), process_group=0,  # see ADR 134; Ctrl-C is for the extender
            )  # fmt: skip
            theirs.close()
            try:
                await self._answer(ours)
            except Exception:
                log.exception("the admin process asked what cannot be answered")
            finally:
                ours.close()
                code = await child_process.ended(process, END_S)
            return code

    async def _answer(self, ours: socket.socket) -> None:
        reader, writer = await asyncio.open_connection(sock=ours)
        try:
            writer.write(pickle_frames.encode(self._start))
            await self._answers().serve(reader, writer)
        finally:
            writer.transport.abort()
