"""The arbiter of one user's programs without Kubernetes: it hands out turns on the cards, and is started on demand.

At most one arbiter serves a state directory: it inherits the open descriptor of `<state>/arbiter.lock`, whose lock it
holds for its whole life. It exits by itself when there has been no allocation for a while. Without an arbiter limits
are still enforced, but programs on one card are not kept apart in time.
"""

import fcntl
import logging
import os
import subprocess
from pathlib import Path
from typing import Final

from limiter import installation, local_state
from limiter.host import Host
from limiter.installation import LimiterError

_LOCK: Final = "arbiter.lock"
_LOG: Final = "arbiter.log"
_IDLE_EXIT_S: Final = 10
_MAX_LOG: Final = 1 << 20  # bytes
_TIMEOUTS_S: Final = (0.1, 0.4, 1.5)  # for the socket, after each start: a running arbiter may be about to exit
_POLL_S: Final = 0.002
DETACHED: Final = ("/bin/sh", "-c", '"$@" &', "sh")  # neither our child, nor in our terminal's session

log = logging.getLogger(__name__)


def await_socket(folder: Path, host: Host) -> bool:
    """Start an arbiter if none runs and wait for the allocation's socket; return whether the socket exists.

    A missing arbiter is logged.
    """
    home, socket = folder.parents[1], local_state.socket_of(folder)
    for timeout_s in _TIMEOUTS_S:
        if not ensure_running(home):
            break
        if host.wait_until(socket.exists, timeout_s=timeout_s, period_s=_POLL_S):
            return True
    log.warning("vgpu: no arbiter: programs on one card are not kept apart in time; see %s", home / _LOG)
    return False


def ensure_running(home: Path) -> bool:
    """Start an arbiter for a state directory that has none; return whether there is one now. Idempotent."""
    try:
        program = installation.arbiter_path()
        lock = os.open(home / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    except (LimiterError, OSError):
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _start(program, home, lock)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(lock)
    return True


def _start(program: Path, home: Path, lock: int) -> None:
    command = [str(program), "--idle-exit", str(_IDLE_EXIT_S), str(home / local_state.ALLOCATIONS)]
    with (home / _LOG).open("ab") as output:
        if output.tell() > _MAX_LOG:
            output.truncate(0)
        subprocess.run(
            [*DETACHED, *command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={},
            cwd="/",
            pass_fds=(lock,),
            start_new_session=True,
            check=False,
        )
