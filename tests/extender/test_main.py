"""The process itself: it starts from a kubeconfig, answers, and gives its Lease back when it is told to end."""

import asyncio
import itertools
import json
import signal
import socket
import sys
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from simulator.api import server
from vgpu import names

LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{names.NAMESPACE}/leases/vgpu-extender"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


async def answers(http: httpx.AsyncClient, url: str) -> None:
    async with asyncio.timeout(30):
        while True:
            try:
                if (await http.get(url)).is_success:
                    return
            except httpx.TransportError:
                pass
            await asyncio.sleep(0.05)


async def holder(http: httpx.AsyncClient, url: str) -> str:
    lease = (await http.get(url + LEASE)).json()
    found: str = lease.get("spec", {}).get("holderIdentity", "")
    return found


async def test_it_serves_and_gives_its_lease_back(tmp_path: Path) -> None:
    numbers = itertools.count(1)
    api = server.make_cluster(lambda: datetime.now(UTC), lambda: f"{next(numbers):08x}-uid")
    port = free_port()
    async with server.serving(api) as url, httpx.AsyncClient() as http:
        config = {
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": url}}],
            "users": [{"name": "u", "user": {}}],
        }
        (tmp_path / "kubeconfig").write_text(json.dumps(config))
        flags = [f"--kubeconfig={tmp_path}/kubeconfig", f"--listen=127.0.0.1:{port}", "--identity=me"]
        process = await asyncio.create_subprocess_exec(sys.executable, "-m", "extender", *flags)
        try:
            await answers(http, f"http://127.0.0.1:{port}/readyz")
            async with asyncio.timeout(10):
                while await holder(http, url) != "me":
                    await asyncio.sleep(0.02)
            refused = await http.post(f"http://127.0.0.1:{port}/filter", content=b"{}")
            assert (refused.status_code, refused.json()["Error"][:4]) == (400, "Pod:")
            process.send_signal(signal.SIGTERM)
            assert await asyncio.wait_for(process.wait(), 20) == 0
        finally:
            if process.returncode is None:
                process.kill()
        assert await holder(http, url) == ""


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--listen=0.0.0.0:9870"], "not loopback"),
        (["--listen=nonsense"], "listen"),
        (["--tls-cert=/x"], "belong together"),
        (["--node-policy=pack"], "binpack"),
    ],
    ids=["open", "no address", "half of TLS", "unknown policy"],
)
async def test_bad_settings_are_named(flags: list[str], words: str) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "extender", *flags, stderr=asyncio.subprocess.PIPE
    )
    _, said = await process.communicate()
    assert process.returncode == 2
    assert words in said.decode()
