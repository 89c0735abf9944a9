"""A watch whose peer vanishes without a FIN: the network is cut, and no packet says so."""

import asyncio
import os
import shutil
import socket
import sys
from pathlib import Path

import pytest

from vgpu.adapters.kubernetes import sockets

LIMIT_S = 20.0


def test_every_socket_has_keepalive_and_a_user_timeout() -> None:
    made = sockets.connect_socket((socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 1)))
    with made:
        assert made.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert made.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 10_000
        idle = made.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE)
        probes = made.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL) * sockets.PROBES
        assert idle + probes <= sockets.DEAD_AFTER_S


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="needs root and unshare")
async def test_a_half_open_watch_fails_within_seconds(tmp_path: Path) -> None:
    child = await asyncio.create_subprocess_exec(
        "unshare", "--net", sys.executable, "-m", "tests.vgpu.adapters.half_open", str(tmp_path), str(LIMIT_S),
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    printed, _ = await asyncio.wait_for(child.communicate(), LIMIT_S + 20)
    assert float(printed) < sockets.DEAD_AFTER_S + 3
