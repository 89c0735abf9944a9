"""One start of the admin's process, `python -m extender.admin`. Imports little: the extender does it first of all."""

import socket
import sys
from asyncio import subprocess
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True)
class AdminChild:
    """A process that was started, and the extender's end of its socket. It ends when this end is closed."""

    process: subprocess.Process
    ours: socket.socket

    @classmethod
    async def start(cls, log_level: str) -> Self:
        """Start the process; it waits for its settings. Raises OSError where it cannot be started."""
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                process = await subprocess.create_subprocess_exec(
                    sys.executable, "-m", "extender.admin", str(theirs.fileno()), log_level,
                    stdin=subprocess.DEVNULL, pass_fds=(theirs.fileno(),),
                    process_group=0,  # see ADR 134; Ctrl-C is for the extender
                )  # fmt: skip
            except BaseException:
                ours.close()
                raise
        return cls(process, ours)
