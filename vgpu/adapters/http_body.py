"""Reads a request's body up to a limit, so that no client can fill this process's memory."""

from collections.abc import AsyncIterable


async def read(chunks: AsyncIterable[bytes], limit: int) -> bytes:
    """Return the body; of a body longer than `limit` bytes return the beginning, which is longer than `limit` too.

    The rest is received and dropped: a client that is still sending may not read an answer.
    """
    body = bytearray()
    async for chunk in chunks:
        if len(body) <= limit:
            body += chunk
    return bytes(body)
