"""Runs the process that serves the kubelet, as a child of the relaying process, and starts it again when it is killed.

The kubelet's calls wait meanwhile, and the kubelet admits no pod and restarts no container while Allocate waits, not
even that of the device plugin. So the next process has to register in time. A process that ends soon after it has
registered, or before, is not started again: the container ends, and is restarted with the kubelet's back-off.
"""

import asyncio
import ctypes
import logging
import os
import signal
from asyncio.subprocess import Process
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

from vgpu.adapters import child_process

RETURN_S: Final = 30.0  # in which the next process registers
STEADY_S: Final = 5.0  # after which the end of a process is no fault of its start
MOST_ENDS: Final = 5  # in a period, after which the next one ends the container
_PERIOD_S: Final = 600.0
_END_S: Final = 8.0  # from SIGTERM; the pod has 10 s
_POLL_S: Final = 0.05
_PR_SET_PDEATHSIG: Final = 1
PARENT: Final = "VGPU_SERVING_PARENT"  # variable of the child's environment: the PID of the process that started it

log = logging.getLogger(__name__)


class ServedRelay(Protocol):
    """The relay to the process."""

    @property
    def is_served(self) -> bool:
        """Whether the process has registered every resource."""

    def ended(self) -> None:
        """Note that the process has ended."""


def end_with_parent(environment: Mapping[str, str]) -> None:
    """Have this process get SIGTERM when its parent ends, so that it releases the node's Lease and ends.

    The first process may be killed alone: processes of a container that sees the host's are no children of its first.
    The parent says who it is, because it may have ended while this process loaded its modules, which takes seconds.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if environment.get(PARENT) != str(os.getppid()):  # it ended before the call
        os.kill(os.getpid(), signal.SIGTERM)


async def keep_running(
    command: Sequence[str],
    environment: Mapping[str, str],
    relay: ServedRelay,
    *,
    kept_open: Sequence[int],
    clock: Callable[[], float],
    return_s: float = RETURN_S,
    steady_s: float = STEADY_S,
) -> int:
    """Run the process, again where it ends, until it fails at its start or often; return the exit status that it had.

    When cancelled, the process is told to end, and has ended at the return.

    Args:
        command: the program and its arguments.
        environment: of the process, which gets PARENT too.
        relay: told when the process has ended.
        kept_open: file descriptors that the process inherits.
        clock: monotonic, in seconds.
        return_s: in which a process has to register that follows one that has ended.
        steady_s: for which a process has to serve, or its end is a failure at its start.
    """
    within_s: float | None = None  # the first one may wait for a driver
    ends: list[float] = []
    while True:
        async with child_process.running(
            *command,
            tell_to_end=Process.terminate,
            end_s=_END_S,
            pass_fds=kept_open,
            env={**environment, PARENT: str(os.getpid())},
        ) as process:
            served_from = await _registered(process, relay, clock, within_s)
            status = await process.wait() if served_from is not None else process.returncode
        relay.ended()
        now = clock()
        ends = [*(at for at in ends if now - at < _PERIOD_S), now]
        if served_from is None or now - served_from < steady_s or len(ends) > MOST_ENDS:
            if status is not None and status < 0:  # one that has ended by itself has said why, in the last line
                log.error("the serving process %s at its start, or often, and is not started again", _words(status))
            return _exit_status(status)
        log.error("the serving process %s; it is started again, and the kubelet's calls wait", _words(status))
        within_s = return_s


async def _registered(
    process: Process, relay: ServedRelay, clock: Callable[[], float], within_s: float | None
) -> float | None:
    """Wait until the process has registered, and return when that was; None where it has ended, or takes too long."""
    begun = clock()
    while not relay.is_served:
        if process.returncode is not None:
            return None
        if within_s is not None and clock() - begun > within_s:
            log.error("the serving process has not registered within %.0f s", within_s)
            return None
        await asyncio.sleep(_POLL_S)
    return clock()


def _exit_status(status: int | None) -> int:
    """Return the exit status for a child's: a positive number, 128 and the signal's number where a signal ended it."""
    if status is None:
        return 1
    return status if status >= 0 else 128 - status


def _words(status: int | None) -> str:
    if status is not None and status < 0:
        return f"was ended by {signal.Signals(-status).name}"
    return f"has ended with status {status}"
