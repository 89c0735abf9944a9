"""The C code of a card's time line, compiled alone, for tests in virtual time."""

import ctypes
import subprocess
from pathlib import Path
from typing import Final

from simgpu import build

US: Final = 1000
MS: Final = 1000 * US
SLICE: Final = 2 * MS
SWITCH: Final = 530 * US
HANDOVER: Final = 200 * US
START: Final = 1000 * MS
U64 = ctypes.c_uint64

_ROOM: Final = 4 << 20  # a Timeline and more


def compiled(out: Path) -> ctypes.CDLL:
    """Compile the time line into a library of this path."""
    sources = [build.SOURCES / "hardware" / f"{name}.c" for name in ("timeline", "timeline_clients", "timeline_queue")]
    subprocess.run(build.compile_command(out, sources, "-shared", "-fPIC"), check=True)
    loaded = ctypes.CDLL(str(out))
    for name in ("submit", "mark", "passed", "earliest", "wait"):
        getattr(loaded, f"timeline_{name}").restype = U64
    return loaded


class CardTimeline:
    """The time line of a card without any work, at time START."""

    def __init__(self, timeline: ctypes.CDLL) -> None:
        self._timeline = timeline
        self._room = ctypes.create_string_buffer(_ROOM)
        self._call("advance", START)

    def _call(self, name: str, *arguments: int) -> int:
        return int(getattr(self._timeline, f"timeline_{name}")(self._room, *map(U64, arguments)))

    def close(self, queue: int) -> None:
        self._call("close", queue)

    def submit(self, queue: int, ns: int) -> int:
        return self._call("submit", queue, ns)

    def passed(self, queue: int, position: int) -> int:
        """ns since START; 0 = not yet."""
        return max(0, self._call("passed", queue, position) - START)

    def earliest(self, queue: int, position: int) -> int:
        return self._call("earliest", queue, position) - START
