"""The real parts as child processes: started, watched and stopped."""

import asyncio
import contextlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

STOP_S: Final = 5.0
TAIL_LINES: Final = 15


class PartExited(Exception):
    """A part exited without being stopped; the message contains the end of its output."""


class PartProcess:
    """One part: `python -m NAME ...`, its output in a log file."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, log: Path) -> None:
        self.name = name
        self._process = process
        self._log = log

    @classmethod
    async def start(
        cls, name: str, arguments: Sequence[str], environment: Mapping[str, str], log: Path
    ) -> "PartProcess":
        """Start a part in its own session, so that Ctrl-C does not reach it: `stop` ends it."""
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
        """Wait until the part exits, which it should not.

        Raises:
            PartExited: always.
        """
        code = await self._process.wait()
        lines = self._log.read_text(errors="replace").splitlines()[-TAIL_LINES:]
        raise PartExited("\n".join([f"the {self.name} exited with code {code}; the end of its output:", *lines]))

    async def stop(self) -> None:
        """Terminate the part; kill it after 5 s."""
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
