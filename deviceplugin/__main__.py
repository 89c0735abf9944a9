"""`python -m deviceplugin`: wait for the node's lock, and stand between the kubelet and the process that serves it.

This process loads little and does little, so that it lives on where the serving process (`deviceplugin/serving/`) is
killed, which is then started again. SIGTERM ends both.
"""

import fcntl
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from vgpu.adapters import extras

with extras.needed("cluster", by="deviceplugin"):
    from deviceplugin.driver import cdi
    from deviceplugin.kubelet.relay import Relay
    from deviceplugin.serving.process import keep_running
    from deviceplugin.settings import SOCKETS, PluginSettings
    from vgpu.adapters import process
    from vgpu.adapters import settings as settings_reader
    from vgpu.adapters.procfs import Procfs
    from vgpu.node.containers import state_removal
    from vgpu.node.presence import probe_files


def main() -> None:
    """Run the plugin; exit with status 2 on wrong settings, 1 on an error."""
    settings = settings_reader.read(PluginSettings, os.environ)
    try:
        with _node_lock(settings.state_dir) as lock:
            if settings.remove_state:
                remove_last = partial(cdi.remove, settings.cdi_dir)
                removal = partial(state_removal.run, settings.state_dir, Procfs().mountinfos, remove_last)
                process.run("deviceplugin", settings.log_level, removal)
                return
            probe_files.clear(settings.state_dir)  # at once: what is killed was ready, and this container is not yet
            sys.exit(_relay(settings, lock))
    except OSError as error:
        sys.exit(f"deviceplugin: {error}")


def _relay(settings: PluginSettings, lock: int) -> int:
    """Relay until SIGTERM, or until the serving process fails at its start; return the exit status."""
    status = 0

    async def run() -> None:
        nonlocal status
        relay = Relay(settings.device_plugins_dir, settings.relay_dir, SOCKETS, time.time)
        command = (sys.executable, "-m", "deviceplugin.serving", *sys.argv[1:])
        async with relay.running(probe_files.keep_touched(settings.relay_dir / probe_files.ALIVE)):
            status = await keep_running(command, os.environ, relay, kept_open=(lock,), clock=time.monotonic)

    process.run("deviceplugin", settings.log_level, run)
    return status


@contextmanager
def _node_lock(state: Path) -> Iterator[int]:
    """Wait while another process serves this node; yield the lock's file descriptor.

    The end of its live streams would disconnect a plugin that had registered over them.
    """
    state.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (state / "lock").open("w") as lock:
        fcntl.flock(lock.fileno(), fcntl.LOCK_EX)
        yield lock.fileno()


if __name__ == "__main__":
    main()
