"""A process of the cluster, with its log."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from cluster import missing, namespace

_TAIL_BYTES = 4000


class ClusterProcess:
    """One command in the cluster's namespaces, with a log that survives restarts.

    Args:
        name: of the log file, and in messages.
        command: program and arguments.
        within: the cluster's namespaces.
        logs: folder of the log.
        environment: added to the harness's own.
        mounts: id of the process whose mount namespace it shares; the cluster's by default.
        host: its own host name; the machine's by default.

    The working directory is the harness's own.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str | Path],
        within: namespace.LinuxNamespaces,
        logs: Path,
        environment: Mapping[str, str] | None = None,
        mounts: int | None = None,
        host: str = "",
    ) -> None:
        self.name = name
        self.log = logs / f"{name}.log"
        self._command = [*_renamed(host), *(str(word) for word in command)]
        self._within = within
        self._environment = dict(environment or {})
        self._mounts = mounts or within.pid
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Process ID in the harness's own namespace."""
        if self._process is None:
            raise RuntimeError(f"{self.name} was never started")
        return self._process.pid

    def start(self, *more: str) -> None:
        """Start it, with more arguments if given; returns at once."""
        if self.running():
            raise RuntimeError(f"{self.name} runs already")
        program = missing.which(self._command[0]) or self._command[0]
        enter = ["nsenter", "-t", str(self._mounts), "-m", "--", program, *self._command[1:], *more]
        with self.log.open("ab") as log:
            self._process = self._within.spawn(enter, log, os.environ | self._environment)

    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def has_ended(self) -> bool:
        """Whether the process was started and has ended by itself."""
        return self._process is not None and self._process.poll() is not None

    def stop(self, within_s: float = 20) -> int:
        """Send SIGTERM, return the exit status; a process that does not end in time is killed: AssertionError."""
        if self.running():
            self.signal(signal.SIGTERM)
        return self._ended(within_s)

    def kill(self) -> None:
        """Send SIGKILL, and wait for the end."""
        if self.running():
            self.signal(signal.SIGKILL)
        self._ended(10)

    def wait(self, within_s: float) -> int:
        """Wait for a command that ends by itself, and return its exit status."""
        return self._ended(within_s)

    def restart(self) -> None:
        self.stop()
        self.start()

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def _ended(self, within_s: float) -> int:
        if self._process is None:
            return 0
        try:
            status = self._process.wait(within_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise AssertionError(f"{self.name} did not end within {within_s:g} s\n{self.tail()}") from None
        self._process = None
        return status

    def tail(self) -> str:
        """The log's last lines."""
        if not self.log.exists():
            return "(no log)"
        return self.log.read_bytes()[-_TAIL_BYTES:].decode(errors="replace")


def _renamed(host: str) -> list[str]:
    """The beginning of a command that has a host name of its own."""
    if not host:
        return []
    return ["unshare", "--uts", "sh", "-c", 'echo "$0" > /proc/sys/kernel/hostname && exec "$@"', host]
