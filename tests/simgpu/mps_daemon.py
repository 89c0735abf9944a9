"""The simulated daemon of MPS, for tests: commands to it, and processes that know its pipe directory."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from simgpu.session import ProbeSession
from simgpu.world import World

PROGRAM = "nvidia-cuda-mps-control"


class MpsDaemon:
    """A daemon with a pipe directory, and processes that know the directory."""

    def __init__(self, world: World, directory: Path) -> None:
        directory.mkdir()
        self.world, self.directory = world, directory
        self.environment = {"CUDA_MPS_PIPE_DIRECTORY": str(directory)}
        self.process = self.start()

    def start(self) -> subprocess.Popen[str]:
        """Start the daemon of this directory and wait until it answers."""
        program = str(self.world.bin / PROGRAM)
        process = self.world.start(program, "-f", "-multiuser-server", **self.environment)
        deadline = time.monotonic() + 5
        while self.asked("get_server_list").returncode and time.monotonic() < deadline:
            time.sleep(0.01)
        return process

    def asked(self, command: str, user: int | None = None) -> subprocess.CompletedProcess[str]:
        """Give a command to the daemon as an administrator does, or as another user."""
        return subprocess.run(
            [str(self.world.bin / PROGRAM)],
            input=f"{command}\n",
            env=self.world.environment(**self.environment),
            capture_output=True,
            text=True,
            check=False,
            timeout=10,
            user=user,
        )

    def tell(self, command: str) -> list[str]:
        """Return the lines of a command's answer."""
        done = self.asked(command)
        assert done.returncode == 0, done
        return done.stdout.splitlines()

    def server(self) -> int:
        """The PID of the server."""
        (pid,) = self.tell("get_server_list")
        return int(pid)

    def clients(self) -> set[int]:
        """The PIDs of its clients."""
        return {int(pid) for pid in self.tell(f"get_client_list {self.server()}")}

    def session(self, **more: str) -> ProbeSession:
        """A process that was given the directory; CUDA is not initialized."""
        return self.world.session(**self.environment, **more)

    def client(self, **more: str) -> ProbeSession:
        """A client with a context."""
        session = self.session(**more)
        assert session("start()") == 0
        return session


def is_running(pid: int) -> bool:
    """Whether a process runs, and has not ended without being waited for."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def pids(world: World, program: str = "") -> Iterator[int]:
    """Yield the daemons and servers of this world that run, or one of these programs."""
    state = f"SIMGPU_STATE={world.state}".encode()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            name = (process / "cmdline").read_bytes().partition(b"\0")[0].decode()
            variables = (process / "environ").read_bytes().split(b"\0")
        except OSError:
            continue  # it has ended
        if Path(name).name.startswith(program or "nvidia-cuda-mps-") and state in variables:
            yield int(process.name)


def end_all(world: World) -> None:
    """Kill the daemons and servers of this world."""
    while found := list(pids(world)):
        for pid in found:
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)
