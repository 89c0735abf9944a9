"""A daemon of MPS for the first card, with a pipe directory of its own."""

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, TypeVar

import pynvml

from benchmarks.record import machine
from vgpu.adapters import mps
from vgpu.adapters.mps import MpsProcess
from vgpu.domain.identifiers import CardUuid

ANSWER_S: Final = 30.0


class MpsDaemon:
    """Runs until `end`. Raises TimeoutError when it does not answer."""

    def __init__(self, folder: Path, card: CardUuid) -> None:
        self.pipe, self._card = folder / "pipe", card
        self.pipe.mkdir(parents=True)
        self.program = control_program()
        self.environment = {**os.environ, mps.PIPE_DIRECTORY: str(self.pipe)}
        self.daemon = self.start()

    def start(self) -> subprocess.Popen[bytes]:
        """Start the daemon and wait until it answers. Raises TimeoutError."""
        daemon = mps.start(self.program, self.pipe, self.pipe, os.environ, self._card)
        deadline = time.monotonic() + ANSWER_S
        while self.ask("get_server_list") is None:
            if time.monotonic() > deadline:
                raise TimeoutError((self.pipe / "output").read_text())
            time.sleep(0.05)
        return daemon

    def start_server(self) -> None:
        """Let it start its server, which stays. Raises CalledProcessError."""
        client = [sys.executable, "-m", "benchmarks.space.client"]
        subprocess.run(
            client,
            cwd=machine.ROOT,
            env=self.environment,
            input="start\n",
            text=True,
            check=True,
            stdout=subprocess.DEVNULL,
        )

    def ask(self, command: str) -> list[str] | None:
        """Return the daemon's answer; None where it gives none."""
        return asyncio.run(mps.ask(self.program, self.pipe, command, os.environ, ANSWER_S))

    def logged(self) -> dict[str, str]:
        """Return what the daemon and its servers have written into their logs, by the files' paths."""
        logs = sorted(self.pipe.rglob("*.log"))
        return {str(path.relative_to(self.pipe)): path.read_text(errors="replace") for path in logs if path.is_file()}

    def processes(self) -> list[MpsProcess]:
        """Return its daemons and servers that run."""
        return [process for process in mps.processes() if process.pipe == self.pipe]

    def servers(self) -> list[MpsProcess]:
        """Return its servers that run."""
        return [process for process in self.processes() if process.is_server]

    def end(self) -> None:
        """Kill the daemon and its servers."""
        for process in self.processes():
            process.kill()
        self.daemon.wait()


Daemon = TypeVar("Daemon", bound=MpsDaemon)


def control_program() -> Path:
    """Return the daemon's program. Raises FileNotFoundError."""
    simulated = machine.ROOT / "build" / "simgpu" / mps.CONTROL
    found = str(simulated) if machine.is_simulated() else shutil.which(mps.CONTROL)
    if found is None:
        raise FileNotFoundError(f"{mps.CONTROL} is not in PATH")
    return Path(found)


@contextmanager
def daemons(kind: Callable[[Path, CardUuid], Daemon]) -> Iterator[Callable[[], Daemon]]:
    """Yield a function that starts a daemon for the first card; all of them are ended at the exit."""
    pynvml.nvmlInit()
    card = CardUuid(str(pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetHandleByIndex(0))))
    folder = Path(tempfile.mkdtemp(prefix="mps", dir="/tmp"))  # the path of a socket is short
    folder.chmod(0o755)
    numbers = iter(range(100))
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)

        def start() -> Daemon:
            daemon = kind(folder / str(next(numbers)), card)
            stack.callback(daemon.end)
            return daemon

        yield start


@contextmanager
def pipe_of_group(*, is_wanted: bool) -> Iterator[Path | None]:
    """Yield the pipe directory of a daemon for the first card whose server runs; None where none is wanted."""
    if not is_wanted:
        yield None
        return
    with daemons(MpsDaemon) as start:
        daemon = start()
        daemon.start_server()
        yield daemon.pipe
