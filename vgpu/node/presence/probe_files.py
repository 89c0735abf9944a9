"""Two files that the kubelet's probes look at, because the plugin listens on no port.

`alive` is touched every few seconds as long as the event loops of both processes run: the one that relays the kubelet's
calls touches a file of its own, at which the one that serves looks. `ready` exists while the kubelet has a stream for
every resource. A probe in manifests/base/deviceplugin.yaml looks at a file, and loads nothing of the plugin.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Final, NoReturn

ALIVE: Final = "alive"
READY: Final = "ready"
PERIOD_S: Final = 5.0
_HANGS_S: Final = 6 * PERIOD_S  # for which a process that hangs has not touched its file


def clear(folder: Path) -> None:
    """Remove what an earlier process left: until `alive` exists, the plugin waits for the driver, and is alive."""
    for name in (ALIVE, READY):
        (folder / name).unlink(missing_ok=True)


async def keep_touched(file: Path) -> NoReturn:
    """Touch a file every few seconds until cancelled."""
    while True:
        _touch(file)
        await asyncio.sleep(PERIOD_S)


def _touch(file: Path) -> None:
    file.touch()


def is_touched(file: Path, now: float) -> bool:
    """Whether a file has been touched lately; `now` is in seconds since 1970."""
    try:
        return now - file.stat().st_mtime < _HANGS_S
    except FileNotFoundError:
        return False


class ProbeFiles:
    """Keeps the files of one plugin up to date."""

    def __init__(self, folder: Path, is_ready: Callable[[], bool], is_relayed: Callable[[], bool]) -> None:
        """`is_relayed` is whether the process works that relays the kubelet's calls."""
        self._folder = folder
        self._is_ready = is_ready
        self._is_relayed = is_relayed

    async def run(self) -> None:
        """Touch the files until cancelled."""
        while True:
            self.step()
            await asyncio.sleep(PERIOD_S)

    def step(self) -> None:
        """Touch the files once. Raises OSError where the state directory cannot be written."""
        if self._is_relayed():
            (self._folder / ALIVE).touch()
        if self._is_ready():
            (self._folder / READY).touch()
        else:
            (self._folder / READY).unlink(missing_ok=True)
