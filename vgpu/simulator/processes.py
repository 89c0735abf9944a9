"""The real parts as processes beside us: started, waited for, stopped, and missed when they die."""

import asyncio
import contextlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

STOP_S: Final = 5.0
TAIL_LINES: Final = 15


class PartExited(Exception):
    """A part ended though nobody stopped it; the text has its last words."""


class Part:
    """One part: `python -m NAME ...`, its output in a log file."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, log: Path) -> None:
        self.name = name
        self._process = process
        self._log = log

    @classmethod
    async def start(cls, name: str, arguments: Sequence[str], environment: Mapping[str, str], log: Path) -> "Part":
        """Start it in a session of its own, so that Ctrl-C reaches it through `stop` only."""
        with log.open("wb") as output:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                name,
                *arguments,
                env=environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        return cls(name, process, log)

    async def watch(self) -> None:
        """Wait for its end, which nobody wants.

        Raises:
            PartDied: always, when it comes.
        """
        code = await self._process.wait()
        lines = self._log.read_text(errors="replace").splitlines()[-TAIL_LINES:]
        raise PartExited("\n".join([f"the {self.name} ended by itself with code {code}; it said last:", *lines]))

    async def stop(self) -> None:
        """Ask it to stop; after a while, make it."""
        if self._process.returncode is not None:
            return
        self._process.terminate()
        try:
            async with asyncio.timeout(STOP_S):
                await self._process.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
