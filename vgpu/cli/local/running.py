"""The allocations whose programs run: a container leaves the list when it ends, and not when its files are removed."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from vgpu.cli.local import allocations
from vgpu.cli.local.allocations import MachineAllocation
from vgpu.domain.formats import mounted


def read(directories: Iterable[Path]) -> list[MachineAllocation]:
    """Read the allocations below state directories, without those of containers that have ended."""
    found = [allocation for directory in directories for allocation in allocations.read_all(directory)]
    if not any(allocation.is_container for allocation in found):
        return found
    from vgpu.adapters.procfs import Procfs  # noqa: PLC0415 - on a workstation no command needs it

    procfs = Procfs()
    return without_ended(found, procfs.mountinfos, sees_all=procfs.shows_every_process())


def without_ended(
    found: Iterable[MachineAllocation], mountinfos: Callable[[], Mapping[int, str]], *, sees_all: bool
) -> list[MachineAllocation]:
    """Leave out containers whose limits no process has mounted.

    `sees_all` says whether the mounts are those of every process. Where they are not, and no container is found among
    them, nothing is known about any container, and all stay.
    """
    used = mounted.in_use(mountinfos())
    is_known = sees_all or bool(used)
    return [
        allocation
        for allocation in found
        if not (is_known and allocation.is_container) or allocation.folder.name in used
    ]
