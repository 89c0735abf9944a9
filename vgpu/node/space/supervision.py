"""Whether the supervisor of MPS daemons runs on this node: without it, no pod of a group in space is placed here."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Final, NoReturn

from vgpu.node.space import directories

PERIOD_S: Final = 1.0


def is_supervised(state: Path, now: float) -> bool:
    """Whether a supervisor runs that uses this state directory; `now` is in seconds since 1970. Raises OSError."""
    found = directories.below_state(state)
    return found is not None and found.is_supervised(now)


async def watch(state: Path, wall_clock: Callable[[], float], report: Callable[[bool], None]) -> NoReturn:
    """Report whether a supervisor runs, every second until cancelled. Raises OSError."""
    while True:
        report(is_supervised(state, wall_clock()))
        await asyncio.sleep(PERIOD_S)
