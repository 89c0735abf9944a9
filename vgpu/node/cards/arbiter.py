"""Runs the node's arbiter, a program that gives containers turns on a card: restarts it, and ends it with the plugin.

No container depends on the arbiter: without it each one goes on under its own limits, and reconnects later.
"""

import asyncio
import logging
import os
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Final

from vgpu.adapters import child_process
from vgpu.adapters.child_process import ChildEnd, Restarts
from vgpu.pacing.back_off import BackOff

RESTARTS: Final = Restarts(BackOff(first_s=0.1, longest_s=10.0), steady_s=60.0)
END_S: Final = 2.0
_LINE: Final = 4096  # bytes; longer lines are logged in pieces

log = logging.getLogger(__name__)


class Arbiter:
    """Runs the program for the allocations of this node. `is_running`: whether it runs now."""

    def __init__(
        self, program: Path, config: Path, allocations: Path, clock: Callable[[], float], *, end_s: float = END_S
    ) -> None:
        """`clock` is monotonic, in seconds; the program is killed if it runs `end_s` seconds after SIGTERM."""
        parent = str(os.getpid())  # the arbiter ends with this process, even where it is killed
        self._command = (str(program), "--parent", parent, "--config", str(config), str(allocations))
        self._clock = clock
        self._end_s = end_s
        self._complaint = ""
        self.is_running = False

    async def run(self) -> None:
        """Keep the program running until cancelled; then end it."""
        await child_process.keep_running(self._run_once, RESTARTS, self._report, clock=self._clock)

    async def _run_once(self) -> int:
        async with child_process.running(
            *self._command, tell_to_end=Process.terminate, end_s=self._end_s, stdin=DEVNULL, stderr=PIPE
        ) as process:
            self.is_running = True
            try:
                await _log_output(process)
                return await process.wait()
            finally:
                self.is_running = False

    def _report(self, end: ChildEnd, pause_s: float) -> None:
        """Log why the program ended; an error at its start only where it is not the last one."""
        if end.code is not None:
            log.warning("arbiter: %s; it is started again in %.1f s", end, pause_s)
        elif end.error != self._complaint:
            self._complaint = end.error
            log.error("arbiter: %s; containers of one card take no turns", end)


async def _log_output(process: Process) -> None:
    log.info("arbiter: started as process %d", process.pid)
    assert process.stderr is not None  # noqa: S101 - it is a pipe
    async for line in lines(process.stderr):
        log.info("arbiter: %s", line)


async def lines(stream: asyncio.StreamReader) -> AsyncIterator[str]:
    """Yield the lines of a stream; lines may be of any length and contain any bytes."""
    rest = b""
    while piece := await stream.read(_LINE):
        *whole, rest = (rest + piece).split(b"\n")
        if len(rest) >= _LINE:
            whole, rest = [*whole, rest], b""
        for line in whole:
            yield line.decode(errors="replace")
    if rest:
        yield rest.decode(errors="replace")
