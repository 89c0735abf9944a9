"""Where the limits of programs without Kubernetes lie: a directory for each user, laid out as a node's.

    <state>/lock                        held while allocations come and go
    <state>/arbiter.lock, arbiter.log   the user's arbiter, see `limiter.local_arbiter`
    <state>/allocations/<id>/           limits, region, arbiter/; command, for people
    <state>/allocations/<id>/owner      locked while whoever made the allocation lives: the kernel lets go of it

It lies in a directory that everybody may write, so it is used only where it is surely this user's own.
"""

import contextlib
import fcntl
import os
import secrets
import shlex
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from limiter import LimiterError
from vgpu import limits, region
from vgpu.limits import Limits

STATE_ENV: Final = "VGPU_STATE_DIR"
ALLOCATIONS: Final = "allocations"
COMMAND: Final = "command"
OWNER: Final = "owner"

_FRESH: Final = "fresh"  # allocations in the making, which whoever watches the others shall not see
_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - what is found there is checked
_LOCK_WAIT_S: Final = 5.0
_LOOK_S: Final = 0.005
_MAX_SOCKET: Final = 107  # characters, of unix(7)'s sun_path
_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH


@dataclass(frozen=True, slots=True)
class Allocation:
    """What one program runs under, with all its children; `owner` is the descriptor that keeps it."""

    folder: Path
    owner: int

    def remove(self) -> None:
        """Remove its files: when the program has ended."""
        shutil.rmtree(self.folder, ignore_errors=True)
        os.close(self.owner)


def place(env: Mapping[str, str]) -> Path:
    """Return where this user's state directory is, or would be: `VGPU_STATE_DIR`, else in shared memory."""
    if chosen := env.get(STATE_ENV):
        return Path(chosen).absolute()
    return shared_memory() / f"vgpu-{os.geteuid()}"


def shared_memory() -> Path:
    """Return the directory for files that processes share; an ordinary one for temporary files where it is lacking."""
    return _SHARED_MEMORY if os.access(_SHARED_MEMORY, os.W_OK) else Path(tempfile.gettempdir())


def ensure(state: Path) -> None:
    """Make the directory where it is not there. Raises LimiterError where it cannot be had, or may not be trusted."""
    if len(str(socket_of(state / ALLOCATIONS / secrets.token_hex(4)))) > _MAX_SOCKET:
        raise LimiterError(f"{state}: too long a path for sockets below it; set {STATE_ENV} to a shorter one")
    try:
        state.mkdir(mode=0o700, exist_ok=True)
        if found := doubt(state):
            raise LimiterError(f"{state} {found}: remove it, or set {STATE_ENV} to a directory of your own")
        for name in (ALLOCATIONS, _FRESH):
            (state / name).mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise LimiterError(f"{state}: {error.strerror}; {STATE_ENV} can name another directory") from error


def doubt(state: Path) -> str:
    """Say why a directory is not surely this user's own, empty for no reason. Raises OSError where nothing is there."""
    status = state.lstat()
    if not stat.S_ISDIR(status.st_mode):
        return "is no directory"
    if status.st_uid != os.geteuid():
        return "belongs to another user"
    return "may be written by others" if status.st_mode & _OTHERS_WRITE else ""


def add(state: Path, wanted: Limits, command: Sequence[str]) -> Allocation:
    """Make an allocation, this process's until it ends; those whose owners have ended without a word go first.

    Raises LimiterError where the files cannot be written, or another process holds the lock and does not go on.
    """
    try:
        with _locked(state / "lock"):
            for folder in (*(state / ALLOCATIONS).iterdir(), *(state / _FRESH).iterdir()):
                if not is_owned(folder):
                    shutil.rmtree(folder, ignore_errors=True)
            return _make(state, wanted, command)
    except OSError as error:
        raise LimiterError(f"{state}: {error.strerror}") from error


def fill(folder: Path, wanted: Limits) -> None:
    """Write what the limiter in a program reads: `limits`, a fresh `region`, and an empty `arbiter/`.

    The region's space is taken at once, so that no program is killed later for want of a page. Raises OSError.
    """
    (folder / "limits").write_bytes(limits.encode(wanted))
    with (folder / "region").open("wb") as file:
        file.write(region.new())
        file.flush()
        os.posix_fallocate(file.fileno(), 0, region.SIZE)
    (folder / "arbiter").mkdir(mode=0o700)


def socket_of(folder: Path) -> Path:
    """Return where the arbiter listens for the programs of an allocation."""
    return folder / "arbiter" / "socket"


def is_owned(folder: Path) -> bool:
    """Whether the process that made an allocation lives."""
    try:
        owner = os.open(folder / OWNER, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        fcntl.flock(owner, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(owner)
    return False


def _make(state: Path, wanted: Limits, command: Sequence[str]) -> Allocation:
    """Make it aside and move it in: whoever sees it finds all of it."""
    name = secrets.token_hex(4)
    fresh = state / _FRESH / name
    fresh.mkdir(mode=0o700)
    made = Allocation(fresh, os.open(fresh / OWNER, os.O_RDONLY | os.O_CREAT, 0o600))
    try:
        fcntl.flock(made.owner, fcntl.LOCK_EX)
        fill(fresh, wanted)
        (fresh / COMMAND).write_text(shlex.join(command))
        return replace(made, folder=fresh.rename(state / ALLOCATIONS / name))
    except OSError:
        made.remove()
        raise


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock that others hold for moments only; one that is stopped meanwhile is not waited for without end."""
    until = time.monotonic() + _LOCK_WAIT_S
    with path.open("w") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > until:
                    raise LimiterError(f"{path} is held by another process that does not go on") from None
                time.sleep(_LOOK_S)
        yield
