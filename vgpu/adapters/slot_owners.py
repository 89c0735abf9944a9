"""Which processes of a container have ended, though its region still counts their memory.

A process that is killed frees nothing in the region; another process of the container clears its slot with its next
call. A container whose other processes make no calls keeps the slot for any time. A process holds an open file
description lock on one byte of the region's file for each slot that it owns, which the kernel releases at its end
(limiter/src/region/slot_locks.h). A program may close the descriptor while it lives, so /proc is asked too.
"""

import fcntl
import struct
from collections.abc import Collection
from pathlib import Path
from typing import Final

from vgpu.adapters import process_use
from vgpu.domain.formats import region
from vgpu.domain.formats.region import SlotOwner

_FLOCK: Final = struct.Struct("@hhqqi4x")  # l_type, l_whence, l_start, l_len, l_pid
_MAX_KNOWN: Final = 4096


class SlotOwners:
    """Tells which slots of regions have owners that have ended. Use it from one thread at a time."""

    def __init__(self, root: Path = Path("/proc")) -> None:
        """`root`: a /proc that shows the containers' processes; without them only the locks tell."""
        self._root = root
        self._ended: set[SlotOwner] = set()

    def ended(self, handle: int, data: bytes) -> tuple[int, ...]:
        """Return the slots whose owners have ended. `data` was read from the region's file, open at `handle`.

        Raises MalformedRegion.
        """
        free = {slot: region.owner(data, slot) for slot in region.locked_slots(data) if _is_free(handle, slot)}
        self._judge(set(free.values()) - self._ended)
        return tuple(slot for slot, owner in free.items() if owner in self._ended)

    def _judge(self, owners: Collection[SlotOwner]) -> None:
        """Remember those of these owners that have ended; looks at every process of the machine."""
        if not owners:
            return
        living = process_use.found_here({(owner.pid, owner.namespace) for owner in owners}, self._root)
        if len(self._ended) > _MAX_KNOWN:
            self._ended.clear()
        self._ended |= {owner for owner in owners if (owner.pid, owner.namespace) not in living}


def _is_free(handle: int, slot: int) -> bool:
    """Whether no process holds a slot's lock; False where the file system has no locks."""
    asked = _FLOCK.pack(fcntl.F_WRLCK, 0, slot, 1, 0)
    try:
        answer = fcntl.fcntl(handle, fcntl.F_OFD_GETLK, asked)
    except OSError:
        return False
    return bool(_FLOCK.unpack(answer)[0] == fcntl.F_UNLCK)
