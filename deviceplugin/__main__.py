"""`python -m deviceplugin`: read the settings, wait for the driver and the node's lock, serve until SIGTERM."""

import asyncio
import fcntl
import logging
import random
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from vgpu.adapters import extras

with extras.needed("cluster", by="deviceplugin"):
    import vgpu
    from deviceplugin import app
    from deviceplugin.app import Clocks
    from deviceplugin.settings import Settings
    from vgpu.adapters import process
    from vgpu.adapters import settings as settings_reader
    from vgpu.adapters.kubernetes.client import Client
    from vgpu.adapters.nvml import Nvml
    from vgpu.errors import NvmlError
    from vgpu.node import probe_files

_DRIVER_RETRY_S: Final = 5.0

log = logging.getLogger("deviceplugin")


def main() -> None:
    """Run the plugin; exit with status 2 on wrong settings, 1 on an error."""
    settings = settings_reader.read(Settings)
    try:
        with _node_lock(settings.state_dir):
            probe_files.clear(settings.state_dir)
            process.run("deviceplugin", settings.log_level, lambda: serve(settings))
    except OSError as error:
        sys.exit(f"deviceplugin: {error}")


async def serve(settings: Settings) -> None:
    """Serve until cancelled."""
    kubeconfig = str(settings.kubeconfig) if settings.kubeconfig else None
    clocks = Clocks(time.monotonic, time.time, _now, lambda: str(uuid.uuid4()), random.random)
    with await _driver() as driver:
        log.info("driver %s", driver.driver_version())
        async with await Client.connect(kubeconfig, user_agent=f"vgpu-deviceplugin/{vgpu.__version__}") as client:
            await app.build(settings, driver, client, clocks).run()


@contextmanager
def _node_lock(state: Path) -> Iterator[None]:
    """Wait while another process serves this node.

    The end of its live streams would disconnect a plugin that had registered over them.
    """
    state.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (state / "lock").open("w") as lock:
        fcntl.flock(lock.fileno(), fcntl.LOCK_EX)
        yield


async def _driver() -> Nvml:
    """Wait until there is a driver: it may be installed after the plugin's start."""
    last_error = ""
    while True:
        try:
            return Nvml()
        except NvmlError as error:
            if str(error) != last_error:
                last_error = str(error)
                log.warning("no NVIDIA driver yet: %s", error)
        await asyncio.sleep(_DRIVER_RETRY_S)


def _now() -> datetime:
    return datetime.now(UTC)


if __name__ == "__main__":
    main()
