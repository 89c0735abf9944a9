"""Keeps the MPS daemon of a group in space running, without Kubernetes, as long as the group has members."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from limiter.host import Host
from vgpu.adapters import mps
from vgpu.cli.local import space_group
from vgpu.cli.local.space_group import LocalGroup

_POLL_S: Final = 0.5
_ANSWER_S: Final = 1.0


def keep(group: LocalGroup, control: Path, env: Mapping[str, str], host: Host) -> None:
    """Run the daemon until the group has no member any more; the caller holds the group's lock.

    What an earlier keeper has left, which was killed, is ended first: its servers have no daemon that this process
    could wait for. Raises OSError.
    """
    group.ready.unlink(missing_ok=True)
    _end(group)
    try:
        while _has_members(group):
            _serve(group, control, env, host)
    finally:
        group.ready.unlink(missing_ok=True)
        _end(group)


def _serve(group: LocalGroup, control: Path, env: Mapping[str, str], host: Host) -> None:
    """Start a daemon, and return when it has ended, or the group has no members."""
    daemon = mps.start(control, group.pipe, group.log, env)
    while daemon.poll() is None and _has_members(group):
        if not group.ready.exists() and _answers(group, control, env):
            group.ready.touch()
        host.sleep(_POLL_S if group.ready.exists() else _POLL_S / 10)
    group.ready.unlink(missing_ok=True)
    if daemon.poll() is not None:
        _end(group)
        host.sleep(_POLL_S)  # a daemon that ends at once is not started in a tight loop


def _has_members(group: LocalGroup) -> bool:
    """Whether the group has members.

    Where none is found, `ready` is removed, and the members are read once more: a program that joins after that waits
    for the next keeper's daemon.
    """
    if space_group.members(group):
        return True
    group.ready.unlink(missing_ok=True)
    return bool(space_group.members(group))


def _answers(group: LocalGroup, control: Path, env: Mapping[str, str]) -> bool:
    return asyncio.run(mps.ask(control, group.pipe, "get_server_list", env, _ANSWER_S)) is not None


def _end(group: LocalGroup) -> None:
    """Kill the group's daemon and servers: no program of the group is left, or their daemon has ended."""
    for process in mps.processes():
        if process.pipe == group.pipe:
            process.kill()
