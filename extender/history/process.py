"""The drain as a process of its own, and the recorder in this one: what an extender with a history runs."""

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
from vgpu.adapters.child_process import ChildEnd, Restarts
from vgpu.pacing.back_off import BackOff

RESTARTS: Final = Restarts(BackOff(first_s=0.2, longest_s=10.0), steady_s=10.0)
END_S: Final = 0.5  # a transaction that is not finished by then is repeated by the next drain
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
        await child_process.keep_running(
            self._run_once, RESTARTS, _report, clock=self._clocks.monotonic, sleep=self._clocks.sleep
        )

    async def _run_once(self) -> int:
        """Run the process once, and let it finish its transaction at the end; return its exit status."""
        async with child_process.running(
            sys.executable, "-m", "extender.history",
            tell_to_end=_close_input, end_s=END_S, stdin=PIPE, env=self._environment,
        ) as process:  # fmt: skip
            return await process.wait()


def _close_input(process: Process) -> None:
    assert process.stdin is not None  # noqa: S101 - it is a pipe
    process.stdin.close()


def _report(end: ChildEnd, pause_s: float) -> None:
    log.warning("history: the drain %s; it is started again in %.1f s", end, pause_s)
