"""The first process of a container, where the container is to outlive its program: it keeps one program running.

A container ends with its first process, whatever else runs in it. So what must outlive a program that is killed is
started by it, and left to this process, which waits for its end: an ended process stays until somebody does.
"""

import ctypes
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from vgpu.adapters.child_process import ChildEnd, Restarts

_SET_CHILD_SUBREAPER: Final = 36  # of prctl(2): orphans become children of this process, as they do of process 1
_SIGNALS: Final = (signal.SIGCHLD, signal.SIGTERM)


def keep_running(
    command: Sequence[str],
    environment: Mapping[str, str],
    restarts: Restarts,
    report: Callable[[ChildEnd, float], None],
    clock: Callable[[], float],
) -> None:
    """Start the program again whenever it ends; on SIGTERM tell it to end, and return once it has.

    `report` gets each end, and the seconds until the next start. `clock` is monotonic, in seconds. Call it in a process
    with no other children and no other threads, from which it takes SIGCHLD and SIGTERM.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)  # each waits until it is asked for, so none is missed
    ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    failures = 0
    while True:
        begun = clock()
        try:
            end = _run(command, environment)
        except OSError as error:
            end = ChildEnd(None, str(error))
        if end is None:
            return
        failures = restarts.failures(failures, clock() - begun)
        pause_s = restarts.back_off.delay_s(failures)
        report(end, pause_s)
        if _is_told_to_end(clock, clock() + pause_s):
            return


def _run(command: Sequence[str], environment: Mapping[str, str]) -> ChildEnd | None:
    """Run the program to its end; None where this process was told to end meanwhile. Raises OSError."""
    program = os.posix_spawnp(command[0], list(command), environment, setsigmask=())
    is_told_to_end = False
    while True:
        if signal.sigwait(_SIGNALS) == signal.SIGTERM:
            is_told_to_end = True
            os.kill(program, signal.SIGTERM)
        if (status := _reap().get(program)) is not None:
            return None if is_told_to_end else ChildEnd(os.waitstatus_to_exitcode(status))


def _is_told_to_end(clock: Callable[[], float], until: float) -> bool:
    while (left_s := until - clock()) > 0:
        found = signal.sigtimedwait(_SIGNALS, left_s)
        if found is not None and found.si_signo == signal.SIGTERM:
            return True
        _reap()
    return False


def _reap() -> dict[int, int]:
    """Return the processes that have ended, each with its wait status, and forget them."""
    ended: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        ended[pid] = status
