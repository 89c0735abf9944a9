"""One private network, process and mount namespace: whatever runs in it ends with it, and nothing in it reaches out.

A janitor process of ours holds the namespace open for as long as its standard input is. When the harness ends, be it by
kill -9, the pipe closes, the namespace's first process returns, the kernel kills all others in it, and the janitor
removes the cgroups that the kubelets made and the cluster's folder. Mounts and interfaces vanish with their namespaces.

Our own threads step into it for the moment of a fork or a connect (`joined`), so processes in there are children of the
harness with ordinary process ids.
"""

import ctypes
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

from cluster import missing

# The shell reads its own pid before it mounts the namespace's own /proc: the outer number, which we need.
_FIRST_PROCESS = r"""
read -r pid rest < /proc/self/stat
mount -t proc proc /proc && ip link set lo up && echo "$pid"
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


class Namespace:
    """Namespaces of one cluster; `name` begins the names of its cgroups, `work` is its folder, removed in the end."""

    def __init__(self, name: str, work: Path) -> None:
        self.name = name
        self._children: list[subprocess.Popen[bytes]] = []
        path = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
        self._janitor = subprocess.Popen(
            ["bash", "-c", _JANITOR, "janitor", _FIRST_PROCESS, name, work],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for the harness, which then ends things in order
            env=os.environ | {"PATH": path},
            text=True,
        )
        self.pid = self._first_pid()

    def _first_pid(self) -> int:
        said = self._janitor.stdout.readline().strip() if self._janitor.stdout else ""
        if not said:
            self.close()
            raise missing.Missing(["private network, process and mount namespaces"])
        return int(said)

    @contextmanager
    def network(self) -> Iterator[None]:
        """Let this thread's new sockets belong to the cluster's network."""
        with joined(self.pid, "net"):
            yield

    def spawn(
        self, command: Sequence[str], output: IO[bytes], environment: Mapping[str, str]
    ) -> subprocess.Popen[bytes]:
        """Start a program among the cluster's processes and on its network; it sees the machine's files."""
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
    """Move the calling thread into one namespace of a process and back; for "pid" it is its children that move."""
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
