"""Reads a request's body up to a limit, so that no client can fill this process's memory or hold its event loop."""

from collections.abc import AsyncIterable, Iterable
from dataclasses import dataclass
from typing import Final

BEGINNING: Final = 64 << 10  # bytes kept of a body that is too long: an admission review begins with its UID
_DIGITS: Final = 18


@dataclass(frozen=True, slots=True)
class Body:
    """A request's body; of one that is longer than the limit the first bytes."""

    data: bytes
    is_too_long: bool = False


async def read(chunks: AsyncIterable[bytes], limit: int, said_length: str | None) -> Body:
    """Return the body of at most `limit` bytes, or the beginning of a longer one; `said_length` is Content-Length.

    The rest of a longer one is received and dropped: a client that is still sending may not read an answer. It is not
    gathered first where the request says its length: to copy megabytes takes milliseconds, in which no other request is
    answered.
    """
    is_too_long = (length(said_length or "") or 0) > limit
    kept, size = list[bytes](), 0
    async for chunk in chunks:
        if not is_too_long or size < BEGINNING:
            kept.append(chunk)
        size += len(chunk)
        if size > limit and not is_too_long:
            is_too_long, kept = True, [_beginning(kept)]
    return Body(_beginning(kept), is_too_long=True) if is_too_long else Body(b"".join(kept))


def length(text: str) -> int | None:
    """Return the bytes that a Content-Length says, at most 18 digits; None for anything else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS else None


def _beginning(chunks: Iterable[bytes]) -> bytes:
    found = bytearray()
    for chunk in chunks:
        found += chunk[: BEGINNING - len(found)]
        if len(found) == BEGINNING:
            break
    return bytes(found)
