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

FIRST_PAUSE_S: Final = 0.1
LONGEST_PAUSE_S: Final = 10.0
STEADY_S: Final = 60.0  # a program that ran this long did not fail at its start
_END_S: Final = 2.0
_LINE: Final = 4096  # bytes; longer lines are logged in pieces

log = logging.getLogger(__name__)


class Backoff:
    """Back-off before each restart: doubles up to 10 s, and starts again after a steady run."""

    def __init__(self) -> None:
        self._pause_s = FIRST_PAUSE_S

    def after(self, ran_s: float) -> float:
        """Return the seconds to wait after the program ran for `ran_s` seconds."""
        if ran_s >= STEADY_S:
            self._pause_s = FIRST_PAUSE_S
        pause_s, self._pause_s = self._pause_s, min(LONGEST_PAUSE_S, 2 * self._pause_s)
        return pause_s


class Arbiter:
    """Runs the program for the allocations of this node. `is_running`: whether it runs now."""

    def __init__(self, program: Path, config: Path, allocations: Path, clock: Callable[[], float]) -> None:
        """`clock` is monotonic, in seconds."""
        parent = str(os.getpid())  # the arbiter ends with this process, even where it is killed
        self._command = (str(program), "--parent", parent, "--config", str(config), str(allocations))
        self._clock = clock
        self._backoff = Backoff()
        self._complaint = ""
        self.is_running = False

    async def run(self) -> None:
        """Keep the program running until cancelled; then end it."""
        while True:
            begun = self._clock()
            await self._run_once()
            await asyncio.sleep(self._backoff.after(self._clock() - begun))

    async def _run_once(self) -> None:
        try:
            process = await asyncio.create_subprocess_exec(*self._command, stdin=DEVNULL, stderr=PIPE)
        except OSError as error:
            self._complain(str(error))
            return
        self.is_running = True
        try:
            await self._log_output(process)
        finally:
            self.is_running = False
            await _end(process)

    async def _log_output(self, process: Process) -> None:
        log.info("arbiter: started as process %d", process.pid)
        assert process.stderr is not None  # noqa: S101 - it is a pipe
        async for line in lines(process.stderr):
            log.info("arbiter: %s", line)
        log.warning("arbiter: exited with code %d; it is restarted", await process.wait())

    def _complain(self, complaint: str) -> None:
        if complaint != self._complaint:
            self._complaint = complaint
            log.error("arbiter: %s; containers of one card take no turns", complaint)


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


async def _end(process: Process) -> None:
    if process.returncode is not None:
        return
    process.terminate()
    try:
        await asyncio.wait_for(process.wait(), _END_S)
    except TimeoutError:
        process.kill()
        await process.wait()
