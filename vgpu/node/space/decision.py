"""What is to be done for a group: which processes of MPS are killed, and whether a daemon is started. Pure.

A daemon is never asked to end: a group without members has no clients, and a client of a container that is gone can be
told nothing. So nothing of a former supervisor must be remembered, and the same question has the same answer at any
time.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from vgpu.adapters.mps import MpsProcess

FAULT_S: Final = 8.0  # for which clients of before a fault may keep a server from serving others
SILENT_S: Final = 8.0  # for which a daemon may not answer


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is to be done for a group.

    Attributes:
        kill: the processes to kill.
        start: whether to start a daemon.
        is_served: whether a daemon serves the group.
    """

    kill: frozenset[MpsProcess] = frozenset()
    start: bool = False
    is_served: bool = False


def judge(processes: Collection[MpsProcess], stuck: Collection[MpsProcess], *, is_wanted: bool) -> Verdict:
    """Return what is to be done for a group with these processes.

    `stuck` are servers that have been faulted for FAULT_S, and daemons that have not answered for SILENT_S. A server
    whose daemon has ended can be told nothing any more, so it is killed, and a daemon is started once it is gone. Of a
    stuck daemon the servers are killed too.
    """
    if not is_wanted:
        return Verdict(kill=frozenset(processes))
    daemons = {process.pid: process for process in processes if not process.is_server}
    living = {pid for pid, daemon in daemons.items() if daemon not in stuck}
    servers = [process for process in processes if process.is_server]
    useless = {server for server in servers if server in stuck or server.parent not in living}
    kill = frozenset(useless | {daemon for pid, daemon in daemons.items() if pid not in living})
    return Verdict(kill, start=not processes, is_served=bool(living) and not kill)
