"""Child processes: one is started, told to end and killed if it does not, and is started again where it should run.

A child must also end where this process is killed and can tell it nothing. It does so by itself: it ends when its
standard input or a socket is closed, which the kernel does for the dead, or it asks the kernel for a signal at its
parent's death (PR_SET_PDEATHSIG).
"""

import asyncio
import contextlib
from asyncio.subprocess import Process
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from vgpu.pacing.back_off import BackOff


@dataclass(frozen=True, slots=True)
class ChildEnd:
    """Why a child process does not run: its exit status, or the error where it could not be started."""

    code: int | None
    error: str = ""

    def __str__(self) -> str:
        return f"cannot be started: {self.error}" if self.code is None else f"exited with code {self.code}"


@dataclass(frozen=True, slots=True)
class Restarts:
    """When a child is started again: with back-off. One that ran for `steady_s` did not fail at its start."""

    back_off: BackOff
    steady_s: float

    def failures(self, before: int, ran_s: float) -> int:
        """Return the failures in a row, after `before` of them and a run of `ran_s` seconds."""
        return 1 if ran_s >= self.steady_s else before + 1


@contextlib.asynccontextmanager
async def running(
    *command: str, tell_to_end: Callable[[Process], None], end_s: float, **options: Any
) -> AsyncGenerator[Process]:
    """Start a process with asyncio's options, and have it ended at the exit of the context.

    A process that still runs then is told to end; it is killed if it runs `end_s` seconds later. Raises OSError where
    it cannot be started.
    """
    process = await asyncio.create_subprocess_exec(*command, **options)
    try:
        yield process
    finally:
        if process.returncode is None:
            tell_to_end(process)
            await ended(process, end_s)


async def ended(process: Process, within_s: float) -> int:
    """Wait until the process ends, and kill it when the time is over; return its exit status."""
    with contextlib.suppress(TimeoutError):
        return await asyncio.wait_for(process.wait(), within_s)
    with contextlib.suppress(ProcessLookupError):  # it has ended by itself just now
        process.kill()
    return await process.wait()


async def keep_running(
    run_once: Callable[[], Awaitable[int]],
    restarts: Restarts,
    report: Callable[[ChildEnd, float], None],
    *,
    clock: Callable[[], float],
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> NoReturn:
    """Repeat `run_once`, which runs a process to its end and returns its exit status, until cancelled.

    An OSError of `run_once` says that the process cannot be started. `report` gets each end, and the seconds until the
    next start. `clock` is monotonic, in seconds.
    """
    failures = 0
    while True:
        begun = clock()
        try:
            end = ChildEnd(await run_once())
        except OSError as error:
            end = ChildEnd(None, str(error))
        failures = restarts.failures(failures, clock() - begun)
        pause_s = restarts.back_off.delay_s(failures)
        report(end, pause_s)
        await sleep(pause_s)
