"""Reads a request's body up to a limit, so that no client can fill this process's memory."""

from collections.abc import AsyncIterable


async def read(chunks: AsyncIterable[bytes], limit: int) -> bytes | None:
    """Return the body; None where it is longer than `limit` bytes."""
    body = bytearray()
    async for chunk in chunks:
        body += chunk
        if len(body) > limit:
            return None
    return bytes(body)
