"""What a fault happens to: a group in space under the node's own supervisor, another group, and a fixed share.

The supervisor, the arbiter and the limiter are those of a node; there is no Kubernetes, so this module adds members
as the device plugin does, and reads what the device plugin reads to tell of a fault.
"""

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Self

import pynvml

from benchmarks.compute.node import BenchmarkNode
from benchmarks.container import GROUP, native_env
from benchmarks.record import machine
from benchmarks.space.client_process import Client
from benchmarks.space.daemon import control_program
from limiter import launch
from vgpu.adapters import mps
from vgpu.domain.asks.space import SpaceGroup
from vgpu.domain.formats.limits import SpaceMembership
from vgpu.domain.identifiers import CardUuid, Namespace
from vgpu.node.space import seen_faults
from vgpu.node.space.directories import GroupOnCard, SpaceDirectories

OTHER: Final = SpaceGroup(Namespace("benchmark"), "other")
MEMBER_CORES, FIXED_CORES = 10, 30
ENABLED: Final = "attribute 133"  # CU_DEVICE_ATTRIBUTE_MPS_ENABLED
KERNEL_US: Final = 500
READY_S, ANSWER_S, SERVED_S, LEFT_S = 10.0, 15.0, 30.0, 5.0
LOOK_S: Final = 0.1
MOST_LEFT_MIB: Final = 64
HEADER: Final = 256  # bytes of a region


class Supervisor:
    """The supervisor of groups and the first process that keeps it running, with a state directory of their own."""

    def __init__(self, folder: Path) -> None:
        space = folder / "space"
        space.mkdir()
        self.directories = SpaceDirectories(space)
        command = [sys.executable, "-m", "benchmarks.space.supervising", str(space), str(control_program())]
        with (folder / "log").open("wb") as log:
            self.first = subprocess.Popen(
                command, cwd=machine.ROOT, env=native_env(), stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def pid(self) -> int:
        """Return the supervisor's process. Raises ValueError while there is none."""
        children = Path(f"/proc/{self.first.pid}/task/{self.first.pid}/children").read_text().split()
        named = [pid for pid in children if b"--supervisor" in Path(f"/proc/{pid}/cmdline").read_bytes()]
        return int(named[0]) if named else 0

    def processes(self, of: GroupOnCard | None = None) -> list[mps.MpsProcess]:
        """Return the daemons and servers that run, of one group or of all."""
        found = [process for process in mps.processes() if self.directories.of_pipe(process.pipe)]
        return [process for process in found if of is None or process.pipe == self.directories.pipe(of)]

    def end(self) -> None:
        """End it, and what it leaves behind."""
        self.first.terminate()
        self.first.wait()
        for process in self.processes():
            process.kill()


class FaultStage:
    """A group with two members, another group with one, and a container of fixed 30 that works all the time.

    Attributes:
        hit: the member to which something happens.
        neighbour: the other member of its group.
        elsewhere: the member of the other group.
    """

    def __init__(self) -> None:
        pynvml.nvmlInit()
        self._card = pynvml.nvmlDeviceGetHandleByIndex(0)
        self._uuid = CardUuid(str(pynvml.nvmlDeviceGetUUID(self._card)))
        self._before = self._on_card()
        self._folder = Path(tempfile.mkdtemp(prefix="s", dir="/tmp"))  # the path of a socket is short
        self._folder.chmod(0o755)
        self._clients: list[Client] = []
        self._members: list[tuple[GroupOnCard, str]] = []
        self.supervisor = Supervisor(self._folder)
        self._node = BenchmarkNode()
        self._regions: dict[Client, Path] = {}

    def __enter__(self) -> Self:
        self._node.__enter__()
        self.hit, self.neighbour = self.member(GROUP), self.member(GROUP)
        self.elsewhere = self.member(OTHER)
        self.fixed = self._client(self._node.container(FIXED_CORES, "fixed"))
        if self.fixed.within(ANSWER_S, "start") != 0 or works(self.fixed) != 0:
            raise RuntimeError("the program of fixed 30 does not start")
        return self

    def __exit__(self, *_: object) -> None:
        for client in self._clients:
            client.end()
        self.supervisor.end()
        self._node.__exit__()
        shutil.rmtree(self._folder, ignore_errors=True)

    def on_card(self, group: SpaceGroup) -> GroupOnCard:
        """Return the group on the first card."""
        return GroupOnCard(self._uuid, group.directory)

    def session(self, group: SpaceGroup = GROUP) -> Client:
        """Start a process of a new member; its group is served by then. Raises RuntimeError."""
        of = self.on_card(group)
        directories = self.supervisor.directories
        directories.add_member(of, str(len(self._members)))
        self._members.append((of, str(len(self._members))))
        if not until(lambda: directories.is_ready(of), READY_S):
            raise RuntimeError("no daemon serves the group")
        membership = SpaceMembership(group.fingerprint, None)
        env = self._node.member(MEMBER_CORES, membership, directories.pipe(of))
        client = self._client(env)
        self._regions[client] = Path(env[launch.REGION_ENV])
        return client

    def member(self, group: SpaceGroup = GROUP) -> Client:
        """Start a member that is a client of its group's server, and has done a kernel. Raises RuntimeError."""
        client = self.session(group)
        if not is_served(client) or works(client) != 0:
            raise RuntimeError("a member cannot start")
        return client

    def seconds_until_served(self, group: SpaceGroup, begun: float) -> float | None:
        """Return how long after `begun` a new member has done a kernel; None where none has SERVED_S later.

        A member that fails is started again, as its pod's policy does.
        """
        while time.monotonic() - begun < SERVED_S:
            try:
                client = self.session(group)
            except RuntimeError:
                continue
            if is_served(client) and works(client) == 0:
                return time.monotonic() - begun
            client.end()
            time.sleep(LOOK_S)
        return None

    def told(self) -> dict[str, bool]:
        """Return who knows of a fault: the supervisor, by group, and the region of each of the first members."""
        noted = self.supervisor.directories.faults()
        named = {"hit": self.hit, "neighbour": self.neighbour, "elsewhere": self.elsewhere}
        return {
            "supervisor, group": self.on_card(GROUP) in noted,
            "supervisor, other": self.on_card(OTHER) in noted,
            **{f"region, {name}": self._has_seen(client) for name, client in named.items()},
        }

    def _has_seen(self, client: Client) -> bool:
        header = self._regions[client].read_bytes()[:HEADER]
        return seen_faults.seen_in(header, time.time, time.monotonic) is not None

    def left(self) -> list[str]:
        """End all programs and members, and return what is still there LEFT_S later, in words."""
        for client in self._clients:
            client.end()
        for of, allocation in self._members:
            self.supervisor.directories.remove_member(of, allocation)
        until(lambda: not self._remains(), LEFT_S)
        return self._remains()

    def _remains(self) -> list[str]:
        running, memory_mib = (now - before for now, before in zip(self._on_card(), self._before, strict=True))
        found = [f"{process.pid} of MPS" for process in self.supervisor.processes()]
        found += [f"{running} processes on the card"] if running > 0 else []
        return found + ([f"{memory_mib} MiB on the card"] if memory_mib > MOST_LEFT_MIB else [])

    def _on_card(self) -> tuple[int, int]:
        """Return the number of processes on the card, and the MiB in use."""
        processes = pynvml.nvmlDeviceGetComputeRunningProcesses(self._card)
        return len(processes), int(pynvml.nvmlDeviceGetMemoryInfo(self._card).used) >> 20

    def _client(self, env: Mapping[str, str]) -> Client:
        self._clients.append(Client({**env, "VGPU_LOG": "off"}))
        return self._clients[-1]


def is_served(client: Client) -> bool:
    """Whether a process makes a context, as a client of MPS."""
    return client.within(ANSWER_S, "start") == 0 and client.within(ANSWER_S, ENABLED) == 1


def works(client: Client) -> int | None:
    """Return the result of a kernel; None where there is no answer in time."""
    return client.within(ANSWER_S, f"spin {KERNEL_US}") or client.within(ANSWER_S, "sync")


def until(holds: Callable[[], bool], seconds: float) -> bool:
    """Wait until it holds; False where it does not in time."""
    ends = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > ends:
            return False
        time.sleep(LOOK_S / 2)
    return True
