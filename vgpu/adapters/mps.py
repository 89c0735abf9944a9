"""NVIDIA's MPS: its daemons and servers among the processes of this machine, and the commands that a daemon takes.

Whose a process is follows from its pipe directory, which the environment of its start names. So nothing is to be
remembered about it: another process of ours may have started it.
"""

import asyncio
import contextlib
import os
import signal
import subprocess
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from vgpu.domain.identifiers import CardUuid

CONTROL: Final = "nvidia-cuda-mps-control"
SERVER: Final = "nvidia-cuda-mps-server"
PIPE_DIRECTORY: Final = "CUDA_MPS_PIPE_DIRECTORY"
FAULT: Final = "FAULT"

_MAX_READ: Final = 256 << 10  # bytes of a process's command or environment
_PARENT, _START = 1, 19  # fields of /proc/<pid>/stat behind the command's name, as proc(5) numbers them less 3


@dataclass(frozen=True, slots=True, order=True)
class MpsProcess:
    """A daemon or a server that runs.

    Attributes:
        pid: its process ID.
        started: when it started, in clock ticks since boot: tells it from a later process with the same ID.
        parent: process ID of its parent.
        is_server: whether it is a server, and no daemon.
        pipe: its pipe directory.
    """

    pid: int
    started: int
    parent: int
    is_server: bool
    pipe: Path

    def kill(self, proc: Path = Path("/proc")) -> None:
        """Send SIGKILL, unless the process has ended."""
        with contextlib.suppress(ProcessLookupError):
            handle = os.pidfd_open(self.pid)
            try:
                if _find(proc / str(self.pid)) == self:  # the handle is of this process, not of a later one
                    signal.pidfd_send_signal(handle, signal.SIGKILL)
            finally:
                os.close(handle)


def processes(proc: Path = Path("/proc")) -> Iterator[MpsProcess]:
    """Yield the daemons and servers of this PID namespace; not those that have ended and are not waited for yet."""
    for directory in proc.iterdir():
        if directory.name.isdecimal() and (found := _find(directory)):
            yield found


def process(pid: int, proc: Path = Path("/proc")) -> MpsProcess | None:
    """Return a daemon or a server; None where the process is none."""
    return _find(proc / str(pid))


def start(
    program: Path, pipe: Path, log: Path, environment: Mapping[str, str], card: CardUuid | None = None
) -> subprocess.Popen[bytes]:
    """Start a daemon for one card, whose servers serve clients of any user. It goes on when this process ends.

    Without a card the daemon serves this user's clients on all cards. Poll the result, so that an ended daemon does not
    stay as a zombie. Raises OSError.
    """
    variables = {PIPE_DIRECTORY: str(pipe), "CUDA_MPS_LOG_DIRECTORY": str(log)}
    options = ["-f"]
    if card is not None:
        variables["CUDA_VISIBLE_DEVICES"] = card
        options.append("-multiuser-server")
    with (log / "output").open("wb") as output:
        return subprocess.Popen(
            [program, *options],
            env={**environment, **variables},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )


async def ask(
    program: Path, pipe: Path, command: str, environment: Mapping[str, str], within_s: float
) -> list[str] | None:
    """Return the lines that a daemon answers to a command; None where none answers in time. Raises OSError."""
    process = await asyncio.create_subprocess_exec(
        program, env={**environment, PIPE_DIRECTORY: str(pipe)}, stdin=PIPE, stdout=PIPE, stderr=DEVNULL
    )
    try:
        output, _ = await asyncio.wait_for(process.communicate(f"{command}\n".encode()), within_s)
    except TimeoutError:
        output = b""
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return output.decode(errors="replace").splitlines() if process.returncode == 0 else None


def _find(directory: Path) -> MpsProcess | None:
    try:
        command, *arguments = _words(directory / "cmdline") or [""]
        is_server = Path(command).name == SERVER
        is_daemon = Path(command).name == CONTROL and "-f" in arguments
        if not is_server and not is_daemon:
            return None
        variables = dict(word.partition("=")[::2] for word in _words(directory / "environ"))
        stat = (directory / "stat").read_text().rpartition(")")[2].split()
    except (OSError, ValueError):
        return None  # it has ended
    pipe = variables.get(PIPE_DIRECTORY)
    if pipe is None:
        return None
    return MpsProcess(int(directory.name), int(stat[_START]), int(stat[_PARENT]), is_server, Path(pipe))


def _words(path: Path) -> list[str]:
    with path.open("rb") as file:
        text = file.read(_MAX_READ).decode(errors="replace").removesuffix("\0")
    return text.split("\0") if text else []
