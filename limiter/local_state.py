"""The state directory of programs without Kubernetes: one for each user, laid out as a node's.

    <state>/lock                        held while allocations are created and removed
    <state>/arbiter.lock, arbiter.log   the user's arbiter, see `limiter.local_arbiter`
    <state>/allocations/<id>/           limits, region, arbiter/; command, for people
    <state>/allocations/<id>/owner      locked by the process that created the allocation, and by those that inherit
                                        the descriptor, as long as any of them lives

The directory lies where every user may create files, so it is used only where it certainly belongs to this user.
"""

import contextlib
import fcntl
import os
import shlex
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Final

from limiter import local_processes
from limiter.host import Host
from limiter.installation import LimiterError
from vgpu.domain.formats import limits, region
from vgpu.domain.formats.limits import Limits

STATE_ENV: Final = "VGPU_STATE_DIR"
ALLOCATIONS: Final = "allocations"
COMMAND: Final = "command"
OWNER: Final = "owner"

_FRESH: Final = "fresh"  # allocations that are being created, which readers of `allocations` must not see
_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - the owner and mode of what is found there are checked
_LOCK_TIMEOUT_S: Final = 5.0
_LOCK_POLL_S: Final = 0.005
_MAX_SOCKET: Final = 107  # characters, of unix(7)'s sun_path
_MAX_ID: Final = 8  # characters
_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH


@dataclass(frozen=True, slots=True)
class LocalAllocation:
    """The files of one program and its children. `owner` is the file descriptor whose lock keeps them."""

    folder: Path
    owner: int


def state_directory(env: Mapping[str, str]) -> Path:
    """Return this user's state directory, which may not exist: `VGPU_STATE_DIR`, or a directory in shared memory."""
    if chosen := env.get(STATE_ENV):
        return Path(chosen).absolute()
    return shared_memory() / f"vgpu-{os.geteuid()}"


def shared_memory() -> Path:
    """Return the directory for files that processes share; the one for temporary files where there is no /dev/shm."""
    return _SHARED_MEMORY if os.access(_SHARED_MEMORY, os.W_OK) else Path(tempfile.gettempdir())


def ensure(state: Path) -> None:
    """Create the directory where it does not exist. Raises LimiterError where it cannot be created or trusted."""
    if len(str(socket_of(state / ALLOCATIONS / ("x" * _MAX_ID)))) > _MAX_SOCKET:
        raise LimiterError(f"{state}: too long a path for sockets below it; set {STATE_ENV} to a shorter one")
    try:
        state.mkdir(mode=0o700, exist_ok=True)
        if found := distrust(state):
            raise LimiterError(f"{state} {found}: remove it, or set {STATE_ENV} to a directory of your own")
        for name in (ALLOCATIONS, _FRESH):
            (state / name).mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise LimiterError(f"{state}: {error.strerror}; {STATE_ENV} can name another directory") from error


def distrust(state: Path) -> str:
    """Return why a directory may not be this user's own, empty where it is. Raises OSError where there is none."""
    status = state.lstat()
    if not stat.S_ISDIR(status.st_mode):
        return "is no directory"
    if status.st_uid != os.geteuid():
        return "belongs to another user"
    return "may be written by others" if status.st_mode & _OTHERS_WRITE else ""


def add(state: Path, wanted: Limits, command: Sequence[str], host: Host) -> LocalAllocation:
    """Create an allocation, which this process owns until it ends; remove those whose processes have all ended.

    Raises LimiterError where the files cannot be written, or another process holds the lock for 5 s.
    """
    try:
        with _locked(state / "lock", host):
            for folder in (*(state / ALLOCATIONS).iterdir(), *(state / _FRESH).iterdir()):
                if not in_use(folder):
                    shutil.rmtree(folder, ignore_errors=True)
            return _create(state, wanted, command, host.new_id())
    except OSError as error:
        raise LimiterError(f"{state}: {error.strerror}") from error


def write_allocation(folder: Path, wanted: Limits) -> None:
    """Write what the limiter in a program reads: `limits`, a fresh `region`, and an empty `arbiter/`.

    The region's space is allocated at once, so that no program is killed later because shared memory is full. Raises
    OSError.
    """
    (folder / "limits").write_bytes(limits.encode(wanted))
    with (folder / "region").open("wb") as file:
        file.write(region.new())
        file.flush()
        os.posix_fallocate(file.fileno(), 0, region.SIZE)
    (folder / "arbiter").mkdir(mode=0o700)


def socket_of(folder: Path) -> Path:
    """Return the socket on which the arbiter serves the programs of an allocation."""
    return folder / "arbiter" / "socket"


def in_use(folder: Path) -> bool:
    """Whether a process of the program that an allocation was created for lives."""
    return is_owned(folder) or local_processes.uses(folder)


def is_owned(folder: Path) -> bool:
    """Whether the process that created an allocation lives, or one that has inherited its lock."""
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


def _create(state: Path, wanted: Limits, command: Sequence[str], name: str) -> LocalAllocation:
    """Create an allocation in `fresh` and rename it, so that no reader sees a part of it."""
    fresh = state / _FRESH / name
    fresh.mkdir(mode=0o700)
    made = LocalAllocation(fresh, os.open(fresh / OWNER, os.O_RDONLY | os.O_CREAT, 0o600))
    try:
        fcntl.flock(made.owner, fcntl.LOCK_EX)
        write_allocation(fresh, wanted)
        (fresh / COMMAND).write_bytes(os.fsencode(shlex.join(command)))  # arguments need not be UTF-8
        return replace(made, folder=fresh.rename(state / ALLOCATIONS / name))
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        os.close(made.owner)
        raise


@contextlib.contextmanager
def _locked(path: Path, host: Host) -> Iterator[None]:
    """Hold the lock. Others hold it for moments only; a stopped process that holds it is not waited for forever."""
    with path.open("w") as file:
        if not host.wait_until(lambda: _try_lock(file), timeout_s=_LOCK_TIMEOUT_S, period_s=_LOCK_POLL_S):
            raise LimiterError(f"{path} is held by another process that does not go on")
        yield


def _try_lock(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
