"""What clients and an arbiter say to each other, for those in Python; as limiter/src/common/arbitration.h has it."""

import ctypes
import struct
from typing import Final

MAGIC: Final = b"VGPUTURN"
VERSION: Final = 1
HELLO: Final = struct.Struct("<8sII16s")
WELCOME: Final = struct.Struct("<8sII")
MESSAGE: Final = struct.Struct("<IIQ")
WANT, DONE = 1, 2
ACCEPTED, OTHER_VERSION, NO_SUCH_CARD, TOO_MANY = range(4)
ANY: Final = 2**64 - 1


class Page(ctypes.Structure):
    """A client's page; `asked_back` is the header's `yield`."""

    _fields_ = (
        ("turn", ctypes.c_uint32),
        ("asked_back", ctypes.c_uint32),
        ("budget_ns", ctypes.c_uint64),
        ("depth_ns", ctypes.c_uint64),
        ("beat", ctypes.c_uint64),
        ("contended", ctypes.c_uint32),
        ("fallback", ctypes.c_uint32),
        ("free_at", ctypes.c_uint64),
        ("until", ctypes.c_uint64),
        ("reserved", ctypes.c_uint8 * 8),
    )
