"""Stand-in programs that write their process IDs into a file, one line for each start."""

import asyncio
from pathlib import Path


def told(pids: Path) -> list[int]:
    return [int(line) for line in pids.read_text().splitlines()] if pids.exists() else []


async def lives(pids: Path, count: int = 1) -> list[int]:
    """Waits for so many starts."""
    async with asyncio.timeout(10):
        while True:
            if len(found := told(pids)) >= count:
                return found
            await asyncio.sleep(0.005)


def is_running(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()
