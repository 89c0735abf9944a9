"""The end of a process that the extender has started, and has told to end."""

import asyncio
import contextlib
from asyncio.subprocess import Process


async def ended(process: Process, within_s: float) -> int:
    """Wait until the process ends, and kill it when the time is over; return its exit status."""
    with contextlib.suppress(TimeoutError):
        return await asyncio.wait_for(process.wait(), within_s)
    process.kill()
    return await process.wait()
