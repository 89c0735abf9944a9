"""The drain as a process of its own, and the recorder in this one: what an extender with a history runs."""

import asyncio
import contextlib
import logging
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from extender.clocks import Clocks
from extender.history import folder
from extender.history.recording.recorder import NO_RECORDER, HistoryRecorder, SpillRecorder
from extender.history.recording.spill import Spill
from vgpu.adapters import child_process

FIRST_PAUSE_S: Final = 0.2
LONGEST_PAUSE_S: Final = 10.0
END_S: Final = 3.0
STOP_S: Final = 10.0  # for the last records on the way to the disk
SWITCH_S: Final = 0.0005  # after which the recorder's thread gives the interpreter's lock to the verbs; 0.005 otherwise

log = logging.getLogger(__name__)


@contextlib.contextmanager
def recorder(home: Path | None, *, max_bytes: int, replica: str, clocks: Clocks) -> Iterator[HistoryRecorder]:
    """Yield a recorder into the spill in `home`, of at most `max_bytes`; without a folder, one that records nothing."""
    if home is None:
        yield NO_RECORDER
        return
    sys.setswitchinterval(SWITCH_S)
    started = SpillRecorder(Spill(folder.spill(home), max_bytes=max_bytes), replica, clocks.now_ms)
    started.start()
    try:
        yield started
    finally:
        if not started.stop(STOP_S):
            log.warning("history: the last events are not recorded: the disk does not answer")


class DrainProcess:
    """Runs `python -m extender.history` with `environment`, and starts it again with back-off."""

    def __init__(self, environment: Mapping[str, str], clocks: Clocks) -> None:
        self._environment = environment
        self._clocks = clocks

    async def run(self) -> None:
        """Keep the process running until cancelled; then close its standard input, on which it ends."""
        pause_s = FIRST_PAUSE_S
        while True:
            begun = self._clocks.monotonic()
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "extender.history", stdin=PIPE, env=self._environment
            )
            try:
                code = await process.wait()
            finally:
                await _end(process)
            pause_s = FIRST_PAUSE_S if self._clocks.monotonic() - begun > LONGEST_PAUSE_S else pause_s
            log.warning("history: the drain exited with code %d; it is started again in %.1f s", code, pause_s)
            await self._clocks.sleep(pause_s)
            pause_s = min(LONGEST_PAUSE_S, 2 * pause_s)


async def _end(process: Process) -> None:
    """Let the process finish its transaction."""
    if process.returncode is not None:
        return
    assert process.stdin is not None  # noqa: S101 - it is a pipe
    process.stdin.close()
    await child_process.ended(process, END_S)
