"""Faults of the MPS servers of groups in space, as the members' own processes have seen them.

A fault ends the contexts of all clients of a server. The limiter in each of them leaves a word in its container's
region, which stays there when the processes have exited: the daemon has forgotten the fault then.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from vgpu.domain.formats import region

_NS: Final = 1e-9


@dataclass(frozen=True, slots=True)
class SeenFault:
    """The last fault that a process of a container has seen; times in seconds since 1970.

    Attributes:
        since: since when that process was a client of the server.
        at: when it saw the fault, which is later than the fault where it asked nothing of the card meanwhile.
    """

    since: float
    at: float


def seen_in(header: bytes, wall_clock: Callable[[], float], monotonic: Callable[[], float]) -> SeenFault | None:
    """Return what a region says that begins so; None where it says nothing.

    `monotonic` is CLOCK_MONOTONIC in seconds. A container writes its region, so the time is no later than now.
    """
    found = region.seen_fault(header)
    if found is None:
        return None
    booted = wall_clock() - monotonic()
    since, at = (min(time_ns * _NS, monotonic()) for time_ns in found)
    return SeenFault(booted + since, booted + at)
