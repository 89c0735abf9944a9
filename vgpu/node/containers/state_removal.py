"""Removes the node's state directory when vgpushare is uninstalled: at once what no container uses, the rest later.

A running container keeps its files by its mounts. Without them in the state directory it could not be started again in
place, so an allocation stays until the last process that has its limits file mounted has ended.
"""

import asyncio
import logging
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from vgpu.adapters import mounts
from vgpu.domain.formats import mounted
from vgpu.node.containers.state_files import StateFiles

PERIOD_S: Final = 5.0

log = logging.getLogger(__name__)


async def run(
    state: Path,
    mountinfos: Callable[[], Mapping[int, str]],
    remove_last: Callable[[], None] = lambda: None,
    period_s: float = PERIOD_S,
) -> None:
    """Remove the state directory, as far as containers leave it, until nothing of it is left; then wait for the end.

    Args:
        state: the state directory.
        mountinfos: reads the mounts of every process of the node.
        remove_last: removes what lies outside the directory and containers need until nothing of the directory is left.
        period_s: after as many seconds what is left is looked at again.
    """
    reported: dict[str, int] = {}
    while used := await asyncio.to_thread(lambda: remove(state, mounted.in_use(mountinfos()))):
        if used != reported:
            reported = used
            processes = ", ".join(map(str, sorted(used.values())))
            log.info("%d allocations are in use, by processes %s: delete their pods", len(used), processes)
        await asyncio.sleep(period_s)
    remove_last()
    log.info("nothing of %s is left", state)
    await asyncio.Event().wait()


def remove(state: Path, used: Mapping[str, int]) -> dict[str, int]:
    """Remove every allocation that is not in use, and the directory itself if none is; return those that stay.

    `used` may name allocations of other directories. Raises OSError.
    """
    if not state.exists():
        return {}
    files = StateFiles(state)
    here = {path.name for path in files.allocations.iterdir()}
    for allocation in here - used.keys():
        files.remove(allocation)
    staying = {allocation: used[allocation] for allocation in here & used.keys()}
    if not staying:
        for probe in state.glob(".probe.*"):  # of a plugin that was killed while it tried to mount
            mounts.unmount(probe)
        shutil.rmtree(state)
    return staying
