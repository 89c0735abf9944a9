"""The messages and the page by which clients and the arbiter agree on turns, for programs in Python.

The Python form of `arbitration.h`, which describes each message and field; a test compares the two. Tests and
benchmarks use it; the installed package does not.
"""

import ctypes
import struct
from typing import Final

MAGIC: Final = b"VGPUTURN"
VERSION: Final = 1
HELLO: Final = struct.Struct("<8sII16s")  # magic, version, abilities, the card's UUID
WELCOME: Final = struct.Struct("<8sII")  # magic, version, result
MESSAGE: Final = struct.Struct("<IIQ")  # kind, turn (of WANT: step_us), ns
JOINS, IN_SPACE = 1, 2  # abilities
WANT, DONE, DONE_AWAITED = 1, 2, 3  # kinds
ACCEPTED, OTHER_VERSION, NO_SUCH_CARD, TOO_MANY = range(4)  # results
ANY: Final = 2**64 - 1  # a budget or a depth without a limit


class ClientPage(ctypes.Structure):
    """A client's page, which the arbiter writes."""

    _fields_ = (
        ("turn", ctypes.c_uint32),
        ("yield_turn", ctypes.c_uint32),
        ("budget_ns", ctypes.c_uint64),
        ("depth_ns", ctypes.c_uint64),
        ("heartbeat_at", ctypes.c_uint64),
        ("contended", ctypes.c_uint32),
        ("fallback_percent", ctypes.c_uint32),
        ("free_at", ctypes.c_uint64),
        ("end_by", ctypes.c_uint64),
        ("joint", ctypes.c_uint32),
        ("job", ctypes.c_uint32),
        ("job_spans", ctypes.c_uint32),
        ("job_batches", ctypes.c_uint32),
        ("job_awaited", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
    )
