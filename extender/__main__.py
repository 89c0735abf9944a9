"""`python -m extender`: read the settings, start the admin's process, build the objects, serve until SIGTERM.

The admin's process is started before the modules of the service are imported: both processes import for about as long,
and so they import at the same time.
"""

import contextlib
import gc
import os
import random
import time
import uuid
from datetime import UTC, datetime

from vgpu.adapters import extras

with extras.needed("cluster", by="extender"):
    from extender.admin.exchange.child import AdminChild
    from extender.clocks import Clocks
    from extender.settings import ExtenderSettings
    from vgpu.adapters import process
    from vgpu.adapters import settings as settings_reader


def main() -> None:
    """Run the extender; exit with status 2 on wrong settings, 1 on an error."""
    settings = settings_reader.read(ExtenderSettings, os.environ)
    process.run("extender", settings.log_level, lambda: _serve(settings))


async def _serve(settings: ExtenderSettings) -> None:
    admin_child = None
    if settings.admin_address:
        with contextlib.suppress(OSError):  # it is tried again later
            admin_child = await AdminChild.start(settings.log_level)
    gc.disable()  # of what imports allocate little is garbage; collections were a tenth of their time
    with extras.needed("cluster", by="extender"):
        from extender import serving  # noqa: PLC0415 - after the start of the admin's process
    gc.enable()
    machine = serving.EntryInputs(
        Clocks(time.monotonic, _now), time.perf_counter, random.random, lambda: str(uuid.uuid4()), os.environ
    )
    await serving.serve(settings, machine, admin_child)


def _now() -> datetime:
    return datetime.now(UTC)


if __name__ == "__main__":
    main()
