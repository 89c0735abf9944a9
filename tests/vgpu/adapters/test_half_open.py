"""A watch whose peer vanishes without a FIN: the network is cut, and no packet says so."""

import asyncio
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.vgpu.adapters.test_reflector import connect
from vgpu.adapters.kubernetes import sockets
from vgpu.errors import KubernetesError

SERVER = """
import socket, time
listener = socket.create_server(("10.123.45.2", 8080))
print("listening", flush=True)
connection, _ = listener.accept()
connection.recv(65536)
connection.sendall(b"HTTP/1.1 200 OK\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n")
time.sleep(600)
"""


def test_every_socket_has_keepalive_and_a_user_timeout() -> None:
    made = sockets.connect_socket((socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 1)))
    with made:
        assert made.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert made.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 10_000
        idle = made.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE)
        probes = made.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL) * sockets.PROBES
        assert idle + probes <= sockets.DEAD_AFTER_S


@contextmanager
def cut_off_server() -> Iterator[str]:
    """A server in a network namespace; yields the name of the link that can be taken down."""
    name, link = f"vgpu-{os.getpid()}", f"vg{os.getpid() % 100_000}"
    ip = ["ip", "-n", name]
    commands = [
        ["ip", "netns", "add", name],
        ["ip", "link", "add", link, "type", "veth", "peer", "name", "peer", "netns", name],
        ["ip", "addr", "add", "10.123.45.1/24", "dev", link],
        ["ip", "link", "set", link, "up"],
        [*ip, "addr", "add", "10.123.45.2/24", "dev", "peer"],
        [*ip, "link", "set", "peer", "up"],
    ]
    try:
        for command in commands:
            if subprocess.run(command, check=False, capture_output=True).returncode:
                pytest.skip(f"needs root and network namespaces: {' '.join(command)}")
        with subprocess.Popen(
            ["ip", "netns", "exec", name, sys.executable, "-c", SERVER], stdout=subprocess.PIPE
        ) as server:
            assert server.stdout is not None
            server.stdout.readline()
            yield name
            server.kill()
    finally:
        subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("ip") is None, reason="needs ip")
async def test_a_half_open_watch_fails_within_seconds(tmp_path: Path) -> None:
    with cut_off_server() as name:
        async with await connect("http://10.123.45.2:8080", tmp_path) as client:

            async def watch() -> None:
                async for _ in client.stream("/watch", {}, silence_s=300):
                    pass

            watching = asyncio.create_task(watch())
            await asyncio.sleep(1)
            assert not watching.done()
            cut = await asyncio.create_subprocess_exec("ip", "-n", name, "link", "set", "peer", "down")
            assert await cut.wait() == 0
            started = time.monotonic()
            with pytest.raises(KubernetesError):
                async with asyncio.timeout(30):
                    await watching
            assert time.monotonic() - started < sockets.DEAD_AFTER_S + 3
