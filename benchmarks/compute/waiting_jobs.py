"""Jobs of two containers each that have asked for their turns, and wait until their fixed shares have repaid a debt.

The arbiter reads the regions of these containers meanwhile.
"""

import struct
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from benchmarks.compute.arbiter_connection import connect
from limiter.arbitration import MESSAGE, WANT
from vgpu.domain.asks.policy import ComputePolicy
from vgpu.domain.formats import limits, region
from vgpu.domain.formats.limits import CardLimit, Limits

CONTAINERS: Final = 2  # of a job
SHARE: Final = 1  # percent
OWED_NS: Final = -3_600_000_000_000
CARD_ROW, VALID_AT, TOKENS_AT, REFILLED_AT = 256, 48, 128, 136  # of a region; `struct region_card`
BETWEEN_S: Final = 0.01


def add(allocations: Path, number: int, *, is_of_job: bool) -> Path:
    """Make the directory of the container with this number, which owes much, and return its socket's path."""
    folder, card = allocations / str(number), card_of(number)
    (folder / "arbiter").mkdir(parents=True)
    job = (number // CONTAINERS + 1).to_bytes(16, "little") if is_of_job else None
    wanted = Limits((CardLimit(limits.uuid_text(card), None, SHARE),), ComputePolicy.FIXED, job=job)
    (folder / "limits").write_bytes(limits.encode(wanted))
    debt = ((0, card), (VALID_AT, b"\1"), (TOKENS_AT, struct.pack("<qQ", OWED_NS, time.monotonic_ns())))
    with (folder / "region").open("wb") as file:
        file.write(region.new())
        file.truncate(region.SIZE)
        for offset, value in debt:
            file.seek(CARD_ROW + offset)
            file.write(value)
    return folder / "arbiter" / "socket"


def card_of(number: int) -> bytes:
    """Return the UUID of the card that the container with this number uses."""
    return bytes([1, number, *range(14)])


def ask(sockets: list[Path], stack: ExitStack) -> None:
    """Connect a client for each container, and ask for a turn. The connections end with `stack`."""
    for number, path in enumerate(sockets):
        client = stack.enter_context(connect(str(path), card_of(number)))
        client.send(MESSAGE.pack(WANT, 0, 0))
        time.sleep(BETWEEN_S)
