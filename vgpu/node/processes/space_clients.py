"""Which processes of members of groups in space are no clients of an MPS server, by NVML. Pure.

The limiter says so of its own process. A program that does not run it says nothing, so NVML's two lists of processes
are compared: that of all processes of a card, and that of the clients of MPS. A member has the pipe directory of its
own group only, so a client is one of its group's server, unless the program started a daemon of its own.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import TypeAlias

from vgpu.domain.identifiers import CardUuid, ContainerName, PodUid
from vgpu.node.processes.unlimited import ProcessGroup

ProcessOnCard: TypeAlias = tuple[CardUuid, int]


def outside(groups: Iterable[ProcessGroup], clients: Mapping[CardUuid, Collection[int]]) -> frozenset[ProcessOnCard]:
    """Return the processes of members that are no clients; cards that are not in `clients` are not judged.

    `clients` must be listed after the processes, because a process may have become a client meanwhile.
    """
    return frozenset(
        (group.gpu, use.pid)
        for group in groups
        if group.pod.space is not None and group.gpu in clients
        for use in group.uses
        if use.pid not in clients[group.gpu]
    )


def counted(
    groups: Iterable[ProcessGroup], processes: Collection[ProcessOnCard]
) -> Mapping[tuple[PodUid, ContainerName], int]:
    """Return how many of these processes each container has."""
    return Counter(
        (group.pod.uid, group.container) for group in groups for use in group.uses if (group.gpu, use.pid) in processes
    )
