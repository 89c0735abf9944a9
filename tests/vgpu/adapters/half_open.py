"""Run in a network namespace of its own: watches a server, cuts the network, and prints after how long the watch fails.

The namespace has only the loopback, which is taken down: packets vanish, and no FIN is sent.
"""

import asyncio
import subprocess
import sys
import time
from pathlib import Path

from tests.vgpu.adapters.test_reflector import connect
from vgpu.domain.errors import KubernetesError

ANSWER = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


async def main(folder: Path, limit_s: float) -> None:
    """Print the seconds from the cut to the failure, or `open` where the watch is open after `limit_s`."""
    is_served = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(ANSWER)
        await writer.drain()
        is_served.set()
        await asyncio.sleep(600)

    async def watch() -> None:
        async for _ in client.stream("/watch", {}, silence_s=600):
            pass

    _ip("up")
    server = await asyncio.start_server(serve, "127.0.0.1", 8080)
    client = await connect("http://127.0.0.1:8080", folder)
    watching = asyncio.create_task(watch())
    await asyncio.wait_for(is_served.wait(), 5)
    await asyncio.sleep(0.5)
    _ip("down")
    started = time.monotonic()
    try:
        async with asyncio.timeout(limit_s):
            await watching
    except KubernetesError:
        print(time.monotonic() - started)  # noqa: T201 - the test reads it
    except TimeoutError:
        print("open")  # noqa: T201 - the test reads it
    server.close()


def _ip(state: str) -> None:
    subprocess.run(["ip", "link", "set", "lo", state], check=True)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), float(sys.argv[2])))
