"""`python -m deviceplugin.serving`: wait for the driver and a usable state directory, and serve until SIGTERM.

`python -m deviceplugin` starts this process, and again where it is killed, and relays the kubelet's calls to it.
"""

import asyncio
import logging
import os
import random
import sys
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from vgpu.adapters import extras

with extras.needed("cluster", by="deviceplugin"):
    import vgpu
    from deviceplugin import app
    from deviceplugin.driver.discovery import DriverRoot
    from deviceplugin.serving.process import end_with_parent
    from deviceplugin.settings import PluginSettings
    from deviceplugin.surroundings import PluginClocks, PluginSurroundings
    from vgpu.adapters import process
    from vgpu.adapters import settings as settings_reader
    from vgpu.adapters.kubernetes.client import KubernetesClient
    from vgpu.adapters.nvml import library
    from vgpu.adapters.nvml.session import Nvml
    from vgpu.adapters.procfs import Procfs
    from vgpu.domain.errors import NvmlError, StateUnusable, VgpuError
    from vgpu.node.presence import probe_files

T = TypeVar("T")

_RETRY_S: Final = 5.0

log = logging.getLogger("deviceplugin")


def main() -> None:
    """Serve; exit with status 2 on wrong settings, 1 on an error."""
    end_with_parent(os.environ)
    settings = settings_reader.read(PluginSettings, os.environ)
    try:
        probe_files.clear(settings.state_dir)
    except OSError as error:
        sys.exit(f"deviceplugin: {error}")
    process.run("deviceplugin", settings.log_level, lambda: serve(settings))


async def serve(settings: PluginSettings) -> None:
    """Serve until cancelled."""
    kubeconfig = str(settings.kubeconfig) if settings.kubeconfig else None
    clocks = PluginClocks(time.monotonic, time.time, _now, lambda: str(uuid.uuid4()), random.random)
    with await _retried(lambda: _nvml(settings.driver_root), NvmlError, "no NVIDIA driver yet") as driver:
        log.info("driver %s", _version(driver))
        async with await KubernetesClient.connect(
            kubeconfig, user_agent=f"vgpu-deviceplugin/{vgpu.__version__}"
        ) as client:
            surroundings = PluginSurroundings(driver, Procfs(), client, clocks, os.environ)
            build = partial(app.build, settings, surroundings, register_at=settings.relay_dir)
            plugin = await _retried(build, StateUnusable, "no card is offered")
            await plugin.run()


def _nvml(root: Path) -> Nvml:
    """Return NVML of the node's driver. Raises NvmlError."""
    if root != Path("/") and (found := DriverRoot(root).nvml()):
        library.load(found)
    return Nvml()


async def _retried(attempt: Callable[[], T], errors: type[VgpuError], meaning: str) -> T:
    """Try until there is no such error: the driver may be installed, or the state directory repaired, meanwhile."""
    last_error = ""
    while True:
        try:
            return attempt()
        except errors as error:
            if isinstance(error, NvmlError) and error.needs_restart:
                raise
            if str(error) != last_error:
                last_error = str(error)
                log.error("%s: %s", meaning, error)  # noqa: TRY400 - an expected failure needs no traceback
        await asyncio.sleep(_RETRY_S)


def _version(driver: Nvml) -> str:
    """Return the driver's version, for people."""
    try:
        return driver.driver_version()
    except NvmlError as error:
        return f"of unknown version ({error})"


def _now() -> datetime:
    return datetime.now(UTC)


if __name__ == "__main__":
    main()
