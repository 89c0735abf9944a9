"""Which processes of a container have ended, though its region still counts their memory.

A process that is killed frees nothing in the region; another process of the container clears its slot with its next
call. A container whose other processes make no calls keeps the slot for any time. A process holds an open file
description lock on one byte of the region's file for each slot that it owns, which the kernel releases at its end
(limiter/src/region/slot_locks.h). A program may close the descriptor while it lives, so /proc is asked too.
"""

import fcntl
import os
import struct
from collections.abc import Collection
from typing import Final

from vgpu.adapters import process_use
from vgpu.domain.formats import region
from vgpu.domain.formats.region import SlotOwner
from vgpu.pacing.fair_cache import FairCache

_FLOCK: Final = struct.Struct("@hhqqi4x")  # l_type, l_whence, l_start, l_len, l_pid
MAX_KNOWN: Final = 4096


class SlotOwners:
    """Tells which slots of regions have owners that have ended. Use it from one thread at a time.

    Where /proc does not show the containers' processes, only the locks of the regions tell. It remembers 4,096 slots
    whose owners have ended; a region with very many of them displaces none of another region.
    """

    def __init__(self) -> None:
        self._ended = FairCache[int, SlotOwner, bool](MAX_KNOWN)  # by the region's inode

    def ended(self, handle: int, data: bytes) -> tuple[int, ...]:
        """Return the slots whose owners have ended. `data` was read from the region's file, open at `handle`.

        Raises MalformedRegion.
        """
        free = {slot: region.owner(data, slot) for slot in region.locked_slots(data) if _is_free(handle, slot)}
        known = {owner for owner in free.values() if self._ended.get(owner)}
        ended = known | self._judged(set(free.values()) - known)
        for owner in ended - known:
            self._ended.put(os.fstat(handle).st_ino, owner, value=True)
        return tuple(slot for slot, owner in free.items() if owner in ended)

    def _judged(self, owners: Collection[SlotOwner]) -> set[SlotOwner]:
        """Return those of these owners that have ended; looks at every process of the machine."""
        if not owners:
            return set()
        living = process_use.found_here({(owner.pid, owner.namespace) for owner in owners})
        return {owner for owner in owners if (owner.pid, owner.namespace) not in living}


def _is_free(handle: int, slot: int) -> bool:
    """Whether no process holds a slot's lock; False where the file system has no locks."""
    asked = _FLOCK.pack(fcntl.F_WRLCK, 0, slot, 1, 0)
    try:
        answer = fcntl.fcntl(handle, fcntl.F_OFD_GETLK, asked)
    except OSError:
        return False
    return bool(_FLOCK.unpack(answer)[0] == fcntl.F_UNLCK)
