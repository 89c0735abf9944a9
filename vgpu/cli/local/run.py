"""Running a command as if we had become it: its exit code is ours, and signals sent to us reach it.

We have to stay beside it, because the files of its limits must be removed when it has ended.
"""

import os
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import Final

NOT_FOUND: Final = 127
NOT_EXECUTABLE: Final = 126
KILLED: Final = 128  # and the signal's number: what shells say
LOOK_S: Final = 1.0

# What people and supervisors send. The kernel's own (SIGSEGV, ...) and job control are not ours to pass on.
PASSED_ON: Final = frozenset(
    {
        signal.SIGINT,
        signal.SIGTERM,
        signal.SIGHUP,
        signal.SIGQUIT,
        signal.SIGUSR1,
        signal.SIGUSR2,
        signal.SIGALRM,
        signal.SIGWINCH,
    }
)


class CannotStart(Exception):
    """The command could not be started; `code` is what a shell would exit with."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


# What Python ignores in itself; programs expect to meet them as they come.
_PYTHONS: Final = frozenset({signal.SIGPIPE, signal.SIGXFSZ})


def run(command: Sequence[str], environment: Mapping[str, str], look: Callable[[], object] = lambda: None) -> int:
    """Run a command to its end and return its exit code, or 128 and the number of the signal that ended it.

    `look` is called about every second meanwhile, with the signals blocked that we pass on.

    Raises:
        CannotStart: there is no such command, or it cannot be executed.
    """
    waited_for = PASSED_ON | {signal.SIGCHLD}
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # where our parent ignored it, nobody would tell us of the end
    before = signal.pthread_sigmask(signal.SIG_BLOCK, waited_for)
    try:
        pid = _start(command, environment, before)
        while (code := _ended(pid)) is None:
            if sent := signal.sigtimedwait(waited_for, LOOK_S):
                _pass_on(sent, pid)
            else:
                look()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return code if code >= 0 else KILLED - code


def _start(command: Sequence[str], environment: Mapping[str, str], mask: set[signal.Signals | int]) -> int:
    try:
        return os.posix_spawnp(command[0], tuple(command), environment, setsigmask=mask, setsigdef=_PYTHONS)
    except FileNotFoundError as error:
        raise CannotStart(f"{command[0]}: command not found", NOT_FOUND) from error
    except OSError as error:
        raise CannotStart(f"{command[0]}: {error.strerror}", NOT_EXECUTABLE) from error


def _ended(pid: int) -> int | None:
    """The exit code of a child that has ended, negative for a signal; None where it lives."""
    found, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if found else None


def _pass_on(sent: signal.struct_siginfo, pid: int) -> None:
    """Give the child what somebody sent to us. What the kernel sent (Ctrl-C) went to our whole process group."""
    by_a_process = sent.si_code <= 0
    if sent.si_signo != signal.SIGCHLD and by_a_process:
        os.kill(pid, sent.si_signo)
