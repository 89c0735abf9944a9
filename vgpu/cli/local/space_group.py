"""Groups in space without Kubernetes: the programs of a group share one MPS server (ADR 174).

    <state>/space/<group>/lock          held by the group's keeper for its whole life
    <state>/space/<group>/ready         empty: the daemon answers
    <state>/space/<group>/pipe/, log/   the daemon's directories

The keeper is a process of its own (`vgpu/cli/local/space_keeper.py`), because the program that was the first
member may end before the others. It starts the daemon, starts another one where that ends, and ends both when no
allocation of the group is in use any more. A member's allocation exists before `ready` is read, and the keeper removes
`ready` before it reads the allocations a last time, so that no member starts without a daemon.

The daemon serves all cards: a program of the group may use any of them.
"""

import contextlib
import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from limiter import launch, local_arbiter, local_state
from limiter.host import Host
from limiter.installation import LimiterError
from vgpu.adapters import mps
from vgpu.domain import object_names
from vgpu.domain.asks import space
from vgpu.domain.asks.policy import ComputePolicy, MemoryPolicy
from vgpu.domain.asks.space import SpaceGroup
from vgpu.domain.formats.limits import Limits, SpaceMembership
from vgpu.domain.identifiers import NO_NAMESPACE
from vgpu.domain.quantity import WHOLE_PERCENT

READY_S: Final = 10.0
_POLL_S: Final = 0.02
_MAX_SOCKET: Final = 107  # characters, of unix(7)'s sun_path
_MAX_LOG: Final = 1 << 20  # bytes
_NOT_FOR_DAEMONS: Final = (
    "LD_PRELOAD",
    "VGPU_",
    "CUDA_",
)  # beginnings of variables: the daemon is no program of a user
_KEEP: Final = """
import os, sys
from pathlib import Path
import limiter
from vgpu.cli.local import space_keeper
from vgpu.cli.local.space_group import LocalGroup
space_keeper.keep(LocalGroup(sys.argv[2], Path(sys.argv[1])), Path(sys.argv[3]), os.environ, limiter.this_host())
"""
_PACKAGE: Final = "the package of NVIDIA's driver that has it is called nvidia-compute-utils, or comes with the driver"


@dataclass(frozen=True, slots=True)
class LocalGroup:
    """A group of one user on this machine.

    Attributes:
        name: a DNS label.
        home: the user's state directory.
    """

    name: str
    home: Path

    @property
    def fingerprint(self) -> bytes:
        """What the limits of its members have: the arbiter serves one user, so names of users say nothing."""
        return SpaceGroup(NO_NAMESPACE, self.name).fingerprint

    @property
    def folder(self) -> Path:
        """The directory of its files."""
        return self.home / "space" / SpaceGroup(NO_NAMESPACE, self.name).directory

    @property
    def pipe(self) -> Path:
        """The daemon's pipe directory."""
        return self.folder / "pipe"

    @property
    def log(self) -> Path:
        """The directory of the daemon's logs."""
        return self.folder / "log"

    @property
    def ready(self) -> Path:
        """The file that says that the daemon answers."""
        return self.folder / "ready"


def membership(wanted: Limits, group: LocalGroup, sm_percentage: int | None) -> Limits:
    """Return the limits of a member of a group. Raises ValueError for what does not go with a group."""
    if not object_names.is_label(group.name):
        raise ValueError(f"--space: must be a DNS label of at most 63 characters, such as models, and not {group.name}")
    if sm_percentage is not None and not 1 <= sm_percentage <= WHOLE_PERCENT:
        raise ValueError(f"--sm-percentage: must be 1 to {WHOLE_PERCENT}, and not {sm_percentage}")
    if wanted.memory_policy is MemoryPolicy.SPILL:
        raise ValueError("--memory-policy: spill is unified memory, which clients of MPS have none of; leave it out")
    if wanted.compute_policy is not ComputePolicy.BURST:
        raise ValueError("--compute-policy: leave it out with --space, which is a policy itself")
    return replace(wanted, space=SpaceMembership(group.fingerprint, sm_percentage))


@contextlib.contextmanager
def environment(
    wanted: Limits, group: LocalGroup, base_env: Mapping[str, str], host: Host, command: Sequence[str] = ()
) -> Iterator[dict[str, str]]:
    """Yield the environment in which a command runs as a member of a group, whose daemon runs by then.

    Raises LimiterError, also where this machine has no MPS, and where no daemon answers within READY_S.
    """
    control = control_program(base_env)
    with launch.environment(wanted, base_env, host, command) as env:
        (Path(env[launch.LIMITS_ENV]).parent / space.NAME_FILE).write_text(group.name)
        _await_daemon(group, control, base_env, host)
        yield {**env, launch.SPACE_ENV: str(group.pipe)}


def control_program(env: Mapping[str, str]) -> Path:
    """Return the program that is MPS's daemon. Raises LimiterError where there is none."""
    found = shutil.which(mps.CONTROL, path=env.get("PATH", os.defpath))
    if found is None:
        raise LimiterError(f"--space: this machine has no {mps.CONTROL} in PATH; {_PACKAGE}")
    return Path(found).absolute()


def members(group: LocalGroup) -> list[Path]:
    """Return the allocations of the group that are in use."""
    folders = (group.home / local_state.ALLOCATIONS).iterdir()
    return [folder for folder in folders if _is_member(folder, group) and local_state.in_use(folder)]


def _is_member(folder: Path, group: LocalGroup) -> bool:
    try:
        return (folder / space.NAME_FILE).read_text() == group.name
    except (OSError, UnicodeDecodeError):
        return False


def _await_daemon(group: LocalGroup, control: Path, env: Mapping[str, str], host: Host) -> None:
    if len(str(group.pipe / "control_privileged")) > _MAX_SOCKET:
        raise LimiterError(f"{group.home}: too long for MPS's sockets; set {local_state.STATE_ENV} to a shorter path")

    def is_ready() -> bool:
        _ensure_keeper(group, control, env)
        return group.ready.exists()

    try:
        for folder in (group.folder.parent, group.folder, group.pipe, group.log):
            folder.mkdir(mode=0o700, exist_ok=True)
        served = host.wait_until(is_ready, timeout_s=READY_S, period_s=_POLL_S)
    except OSError as error:
        raise LimiterError(f"{group.folder}: {error.strerror}") from error
    if not served:
        raise LimiterError(f"--space: no MPS daemon answers within {READY_S:.0f} s; see {group.log}")


def _ensure_keeper(group: LocalGroup, control: Path, env: Mapping[str, str]) -> None:
    """Start a keeper where none runs: it inherits the lock. Raises OSError."""
    lock = os.open(group.folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _start(group, control, env, lock)
    except BlockingIOError:
        return
    finally:
        os.close(lock)


def _start(group: LocalGroup, control: Path, env: Mapping[str, str], lock: int) -> None:
    arguments = [sys.executable, "-c", _KEEP, str(group.home), group.name, str(control)]
    kept = {name: value for name, value in env.items() if not name.startswith(_NOT_FOR_DAEMONS)}
    with (group.log / "keeper").open("ab") as output:
        if output.tell() > _MAX_LOG:
            output.truncate(0)
        subprocess.run(
            [*local_arbiter.DETACHED, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**kept, "PYTHONPATH": os.pathsep.join(sys.path)},
            cwd="/",
            pass_fds=(lock,),
            start_new_session=True,
            check=False,
        )
