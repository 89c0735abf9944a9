"""Decodes JSON that hostile users have written, of any depth, without holding the event loop."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

import msgspec

from vgpu.domain.formats import json_depth

T = TypeVar("T")


async def decode(decoder: Callable[[bytes], T], data: bytes | msgspec.Raw) -> T:
    """Return what `decoder` makes of `data`; values too deep for the parser are read as null.

    Text that the parser can read costs nothing extra. Deeper text is cut in a thread.

    Raises:
        RecursionError: never for valid JSON.
        Exception: whatever `decoder` raises for values of wrong types.
    """
    text = bytes(data)
    try:
        return decoder(text)
    except RecursionError:
        return decoder(await asyncio.to_thread(json_depth.shallow, text))
