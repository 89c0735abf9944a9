"""The file into which a script in place of a program writes its process ID at each start, one a line."""

import asyncio
from pathlib import Path


def read_pids(pids: Path) -> list[int]:
    return [int(line) for line in pids.read_text().splitlines()] if pids.exists() else []


async def wait_for_starts(pids: Path, count: int = 1) -> list[int]:
    """Wait until `count` starts are recorded, and return their process IDs."""
    async with asyncio.timeout(10):
        while True:
            if len(found := read_pids(pids)) >= count:
                return found
            await asyncio.sleep(0.005)


def is_running(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()
