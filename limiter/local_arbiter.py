"""A user's arbiter, which hands out turns on the cards: started when somebody needs it, and alone.

It holds the lock `<state>/arbiter.lock` for its whole life without knowing of it: the descriptor was open when it was
started. It gives up by itself when no allocation has been there for a while. Without it limits hold all the same, but
programs on one card are not kept apart in time.
"""

import fcntl
import logging
import os
import subprocess
import time
from pathlib import Path
from typing import Final

import limiter
from limiter import LimiterError, local_state

_LOCK: Final = "arbiter.lock"
_LOG: Final = "arbiter.log"
_IDLE_EXIT_S: Final = 10
_MAX_LOG: Final = 1 << 20  # bytes
_TRIES_S: Final = (0.1, 0.4, 1.5)  # one that is there may be about to give up, or the machine busy
_LOOK_S: Final = 0.002
# Neither our child, whom somebody would have to wait for, nor of our terminal's session.
_DETACHED: Final = ("/bin/sh", "-c", '"$@" &', "sh")

log = logging.getLogger(__name__)


def await_socket(folder: Path) -> bool:
    """Have an arbiter listen for an allocation's programs; whether one does. That none can be had is logged."""
    home, socket = folder.parents[1], local_state.socket_of(folder)
    for within_s in _TRIES_S:
        if not keep(home):
            break
        if _appears(socket, within_s):
            return True
    log.warning("vgpu: no arbiter: programs on one card are not kept apart in time; see %s", home / _LOG)
    return False


def keep(home: Path) -> bool:
    """Start an arbiter for a state directory that has none; whether there is one. May be called at any time."""
    try:
        program = limiter.arbiter_path()
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
            [*_DETACHED, *command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={},
            cwd="/",
            pass_fds=(lock,),
            start_new_session=True,
            check=False,
        )


def _appears(path: Path, within_s: float) -> bool:
    until = time.monotonic() + within_s
    while not path.exists():
        if time.monotonic() > until:
            return False
        time.sleep(_LOOK_S)
    return True
