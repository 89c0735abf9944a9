"""A private network, process and mount namespace: its processes end with it and reach nothing outside.

A janitor process keeps the namespace open while the janitor's standard input is open. When the harness ends, also by
kill -9, the pipe closes, the namespace's first process returns, the kernel kills all other processes of the namespace,
and the janitor removes the kubelets' cgroups and the cluster's folder. Mounts and interfaces end with their namespaces.

A thread of the harness joins the namespace for a fork or a connect (`joined`), so processes of the namespace are
children of the harness with ordinary process IDs.
"""

import ctypes
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

from cluster import missing

# The shell reads its process ID before it mounts the namespace's own /proc: the ID in the outer namespace.
_FIRST_PROCESS = r"""
read -r pid rest < /proc/self/stat
mount -t proc proc /proc && ip link set lo up &&
  ip addr add 192.0.2.1/32 dev lo && ip addr add 10.0.0.1/32 dev lo && echo "$pid"
read -r forever
"""
_JANITOR = r"""
name=$2 work=$3
unshare --net --mount --pid --fork --kill-child --propagation private bash -c "$1"
for attempt in $(seq 100); do
  find /sys/fs/cgroup -depth -type d -path "*/$name-*" -exec rmdir {} + 2> /dev/null
  [ -z "$(find /sys/fs/cgroup -type d -path "*/$name-*" -print -quit 2> /dev/null)" ] && break
  sleep 0.05
done
rm -rf "$work"
"""

_libc = ctypes.CDLL(None, use_errno=True)


class LinuxNamespaces:
    """The namespaces of one cluster; `name` is the prefix of its cgroups, and `close` removes its folder `work`."""

    def __init__(self, name: str, work: Path) -> None:
        self.name = name
        self._children: list[subprocess.Popen[bytes]] = []
        path = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
        self._janitor = subprocess.Popen(
            ["bash", "-c", _JANITOR, "janitor", _FIRST_PROCESS, name, work],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C goes to the harness only, which then ends the processes in order
            env=os.environ | {"PATH": path},
            text=True,
        )
        self.pid = self._first_pid()

    def _first_pid(self) -> int:
        printed = self._janitor.stdout.readline().strip() if self._janitor.stdout else ""
        if not printed:
            self.close()
            raise missing.Missing(["private network, process and mount namespaces"])
        return int(printed)

    @contextmanager
    def network(self) -> Iterator[None]:
        """Inside the block, new sockets of this thread belong to the cluster's network."""
        with joined(self.pid, "net"):
            yield

    def spawn(
        self, command: Sequence[str], output: IO[bytes], environment: Mapping[str, str]
    ) -> subprocess.Popen[bytes]:
        """Start a program in the network and process namespaces; the program sees the machine's files."""
        with joined(self.pid, "net"), joined(self.pid, "pid"):
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=environment,
                start_new_session=True,
            )
        self._children.append(child)
        return child

    def close(self) -> None:
        """End everything in the namespace and wait until its cgroups and its folder are gone."""
        if self._janitor.stdin:
            self._janitor.stdin.close()
        for child in self._children:
            child.wait()  # the namespace's first process does not end before all others are reaped
        if self._janitor.stdout:
            self._janitor.stdout.close()
        self._janitor.wait()


@contextmanager
def joined(pid: int, kind: str) -> Iterator[None]:
    """Move the calling thread into one namespace of a process and back; with "pid" only its new children move."""
    with ExitStack() as stack:
        own, other = (stack.enter_context(Path(f"/proc/{of}/ns/{kind}").open("rb")) for of in ("thread-self", pid))
        _enter(other.fileno())
        try:
            yield
        finally:
            _enter(own.fileno())


def _enter(descriptor: int) -> None:
    if _libc.setns(descriptor, 0):
        number = ctypes.get_errno()
        raise OSError(number, f"setns: {os.strerror(number)}")
