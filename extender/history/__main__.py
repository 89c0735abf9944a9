"""`python -m extender.history`: drain the spill into the database, until standard input is closed.

The extender starts it as a process of its own, because a thread with this work would delay the verbs. Where the
extender is killed, standard input is closed by the kernel.
"""

import logging
import os
import select
import sys
import time

from vgpu.adapters import extras

with extras.needed("cluster", by="extender"):
    from extender.history import folder
    from extender.history.drain import Drain
    from extender.history.recording.spill_reader import SpillReader
    from extender.history.settings import DrainSettings
    from extender.history.storage import database
    from extender.history.storage.retention import Retention
    from vgpu.adapters import log_lines, process
    from vgpu.adapters import settings as settings_reader
    from vgpu.domain.errors import VgpuError


def main() -> None:
    """Drain; exit with status 2 on wrong settings, 1 on an error."""
    settings = settings_reader.read(DrainSettings, os.environ)
    log_lines.begin(settings.log_level)
    logging.getLogger("alembic").setLevel(logging.WARNING)
    process.give_way()
    try:
        drain(settings).run()
    except (VgpuError, OSError) as error:
        sys.exit(f"history: {log_lines.escaped(str(error))}")


def drain(settings: DrainSettings) -> Drain:
    """Build the drain."""
    return Drain(
        database.engine(settings.url or database.sqlite_url(folder.sqlite_file(settings.dir))),
        SpillReader(folder.spill(settings.dir)),
        Retention(settings.events_days, settings.hours_days, settings.max_mib << 20, settings.series_hours),
        folder.state_file(settings.dir),
        time.monotonic,
        lambda: time.time_ns() // 1_000_000,
        _rest,
    )


def _rest(seconds: float) -> bool:
    """Sleep; return whether standard input was closed."""
    readable, _, _ = select.select([sys.stdin], [], [], seconds)
    return bool(readable) and not os.read(sys.stdin.fileno(), 1)


if __name__ == "__main__":
    main()
