"""A TCP proxy in front of the API server, with an address for each part, which can delay what it forwards.

A process of its own in the cluster's network: `python -m tests.e2e.chaos.proxy FILE ADDRESS...`. FILE holds a JSON
object from address to the seconds that each forwarded piece waits, and is read ten times a second.
"""

import asyncio
import contextlib
import json
import sys
from pathlib import Path
from typing import Final

PORT: Final = 6444
_API: Final = ("127.0.0.1", 443)
_PERIOD_S: Final = 0.1
_PIECE: Final = 65536


class Forwarder:
    """Forwards the connections to one address."""

    def __init__(self) -> None:
        self.delay_s = 0.0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward one connection in both directions until both ends have closed."""
        with contextlib.suppress(OSError):  # the API server does not run
            there_reader, there_writer = await asyncio.open_connection(*_API)
            ways = (self._forward(reader, there_writer), self._forward(there_reader, writer))
            await asyncio.gather(*ways, return_exceptions=True)
        writer.close()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while piece := await reader.read(_PIECE):
                await asyncio.sleep(self.delay_s)
                writer.write(piece)
                await writer.drain()
        finally:
            writer.close()


def delays(file: Path) -> dict[str, float]:
    """Read the file."""
    read: dict[str, float] = json.loads(file.read_text())
    return read


async def main(file: Path, addresses: list[str]) -> None:
    """Listen on every address, and follow the file."""
    forwarders = {address: Forwarder() for address in addresses}
    servers = [await asyncio.start_server(forwarder.serve, address, PORT) for address, forwarder in forwarders.items()]
    while servers:
        for address, delay_s in delays(file).items():
            forwarders[address].delay_s = delay_s
        await asyncio.sleep(_PERIOD_S)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2:]))
