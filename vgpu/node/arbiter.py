"""The node's arbiter, which gives containers turns on a card: a program beside us, kept running, and ended with us.

Nothing waits for it: without it every container goes on by its own limits, and rejoins when it is back.
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
STEADY_S: Final = 60.0  # who lived so long did not fail at the start
_END_S: Final = 2.0
_LINE: Final = 4096  # bytes; what is longer is told in pieces

log = logging.getLogger(__name__)


class Backoff:
    """How long to wait before each next start."""

    def __init__(self) -> None:
        self._pause_s = FIRST_PAUSE_S

    def after(self, lived_s: float) -> float:
        """Seconds to wait after a life of `lived_s`: each short one doubles them, a steady one begins anew."""
        if lived_s >= STEADY_S:
            self._pause_s = FIRST_PAUSE_S
        pause_s, self._pause_s = self._pause_s, min(LONGEST_PAUSE_S, 2 * self._pause_s)
        return pause_s


class Arbiter:
    """Runs the program for the allocations of this node."""

    def __init__(self, program: Path, config: Path, allocations: Path, clock: Callable[[], float]) -> None:
        """`clock` gives seconds that never go back."""
        parent = str(os.getpid())  # with which it ends, should we be killed
        self._command = (str(program), "--parent", parent, "--config", str(config), str(allocations))
        self._clock = clock
        self._backoff = Backoff()
        self._complaint = ""

    async def run(self) -> None:
        """Keep it running until cancelled; then it is ended too."""
        while True:
            begun = self._clock()
            await self._live()
            await asyncio.sleep(self._backoff.after(self._clock() - begun))

    async def _live(self) -> None:
        try:
            process = await asyncio.create_subprocess_exec(*self._command, stdin=DEVNULL, stderr=PIPE)
        except OSError as error:
            self._complain(str(error))
            return
        try:
            await self._attend(process)
        finally:
            await _end(process)

    async def _attend(self, process: Process) -> None:
        log.info("arbiter: started as process %d", process.pid)
        assert process.stderr is not None  # noqa: S101 - it was asked for
        async for line in lines(process.stderr):
            log.info("arbiter: %s", line)
        log.warning("arbiter: ended with %d; it is started again", await process.wait())

    def _complain(self, complaint: str) -> None:
        if complaint != self._complaint:
            self._complaint = complaint
            log.error("arbiter: %s; containers of one card take no turns", complaint)


async def lines(stream: asyncio.StreamReader) -> AsyncIterator[str]:
    """Yield what is written line by line, however long the lines and whatever the bytes."""
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
