"""Frames: a message's length in four bytes, big endian, and its pickle. Between a process and its own child only."""

import asyncio
import pickle
import struct
from typing import Any, BinaryIO, Final

LENGTH: Final = struct.Struct(">I")


def encode(message: Any) -> bytes:
    """Write a frame."""
    data = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    return LENGTH.pack(len(data)) + data


def read(stream: BinaryIO) -> Any:
    """Read a frame; None at the end of the stream."""
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    return pickle.loads(stream.read(LENGTH.unpack(head)[0]))  # noqa: S301 - the other process is ours


async def receive(reader: asyncio.StreamReader) -> Any:
    """Read a frame. Raises IncompleteReadError at the end of the stream."""
    head = await reader.readexactly(LENGTH.size)
    data = await reader.readexactly(LENGTH.unpack(head)[0])
    return pickle.loads(data)  # noqa: S301 - the other process is ours
