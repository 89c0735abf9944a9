"""Two files that the kubelet's probes look at, because the plugin listens on no port.

`alive` is touched every few seconds as long as the event loop runs. `ready` exists while the kubelet has a stream for
every resource. A probe in manifests/base/deviceplugin.yaml looks at a file, and loads nothing of the plugin.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Final

ALIVE: Final = "alive"
READY: Final = "ready"
PERIOD_S: Final = 5.0


def clear(folder: Path) -> None:
    """Remove what an earlier process left: until `alive` exists, the plugin waits for the driver, and is alive."""
    for name in (ALIVE, READY):
        (folder / name).unlink(missing_ok=True)


class ProbeFiles:
    """Keeps the files of one plugin up to date."""

    def __init__(self, folder: Path, is_ready: Callable[[], bool]) -> None:
        self._folder = folder
        self._is_ready = is_ready

    async def run(self) -> None:
        """Touch the files until cancelled."""
        while True:
            self.step()
            await asyncio.sleep(PERIOD_S)

    def step(self) -> None:
        """Touch the files once. Raises OSError where the state directory cannot be written."""
        (self._folder / ALIVE).touch()
        if self._is_ready():
            (self._folder / READY).touch()
        else:
            (self._folder / READY).unlink(missing_ok=True)
