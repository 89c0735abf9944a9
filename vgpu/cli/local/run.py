"""`vgpu run`: runs a command under limits, as a child whose exit code and signals pass through.

This process stays beside the command, because the files of its limits must be removed when it has ended.
"""

import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Final

from vgpu.cli.failure import CommandFailed

NOT_FOUND: Final = 127
NOT_EXECUTABLE: Final = 126
KILLED: Final = 128  # plus the signal's number, as shells have it
IDLE_PERIOD_S: Final = 1.0

# Signals that people and supervisors send. The kernel's own (SIGSEGV, ...) and those of job control are not passed on.
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

_IGNORED_BY_PYTHON: Final = frozenset({signal.SIGPIPE, signal.SIGXFSZ})  # programs expect their defaults


class CannotStart(CommandFailed):
    """The command could not be started; `code` is what a shell would exit with."""


def run_limited(
    command: Sequence[str],
    limits: AbstractContextManager[Mapping[str, str]],
    on_start: Callable[[], object],
    on_idle: Callable[[], object],
) -> int:
    """Run a command in the environment that `limits` yields; return its exit code. Raises CannotStart."""
    with limits as environment:
        return run(command, environment, on_start, on_idle)


def run(
    command: Sequence[str],
    environment: Mapping[str, str],
    on_start: Callable[[], object] = lambda: None,
    on_idle: Callable[[], object] = lambda: None,
) -> int:
    """Run a command to its end and return its exit code, or 128 plus the number of the signal that ended it.

    `on_start` is called once when the command has been started, `on_idle` about every second, both while the signals
    that are passed on are blocked.

    Raises:
        CannotStart: there is no such command, or it cannot be executed.
    """
    awaited = PASSED_ON | {signal.SIGCHLD}
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # an ignored SIGCHLD, inherited from our parent, would not be sent
    before = signal.pthread_sigmask(signal.SIG_BLOCK, awaited)
    try:
        pid = _start(command, environment, before)
        on_start()
        while (code := _exit_code(pid)) is None:
            if received := signal.sigtimedwait(awaited, IDLE_PERIOD_S):
                _pass_on(received, pid)
            else:
                on_idle()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return code if code >= 0 else KILLED - code


def _start(command: Sequence[str], environment: Mapping[str, str], mask: set[signal.Signals | int]) -> int:
    try:
        return os.posix_spawnp(command[0], tuple(command), environment, setsigmask=mask, setsigdef=_IGNORED_BY_PYTHON)
    except FileNotFoundError as error:
        raise CannotStart(f"{command[0]}: command not found", NOT_FOUND) from error
    except OSError as error:
        raise CannotStart(f"{command[0]}: {error.strerror}", NOT_EXECUTABLE) from error


def _exit_code(pid: int) -> int | None:
    """Return the exit code of a child that has ended, negative for a signal; None while it lives."""
    found, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if found else None


def _pass_on(received: signal.struct_siginfo, pid: int) -> None:
    """Send the child what a process sent to us. What the kernel sent (Ctrl-C) went to the whole process group."""
    by_a_process = received.si_code <= 0
    if received.si_signo != signal.SIGCHLD and by_a_process:
        os.kill(pid, received.si_signo)
