"""The webhook as a process: it serves with a certificate that the API server trusts, until SIGTERM."""

import asyncio
import base64
import signal
import socket
import ssl
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from aiohttp import test_utils

from tests.webhook import builders
from tests.webhook.fake_api import FakeApi
from vgpu.domain import names
from webhook.certificates import ca_objects

pytestmark = pytest.mark.heavy

CONFIGURATIONS = [f"/apis/admissionregistration.k8s.io/v1/{kind}/vgpu-webhook" for kind in ca_objects.KINDS]
SECRET = "/api/v1/namespaces/vgpu-system/secrets/vgpu-webhook-ca"
NODES = {"metadata": {"resourceVersion": "1"}, "items": [{"metadata": {"name": "n"}, "status": {"cards": []}}]}


@pytest.fixture
def api() -> FakeApi:
    fake = FakeApi()
    for path in CONFIGURATIONS:
        fake.put(path, {"webhooks": [{"clientConfig": {}}]})
    fake.put(names.GPUNODES_PATH, NODES)
    fake.put(SECRET, {})
    return fake


@pytest.fixture
def port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        number: int = found.getsockname()[1]
        return number


@pytest.fixture
async def program(api: FakeApi, port: int, tmp_path: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    async with test_utils.TestServer(api.application()) as server:
        kubeconfig = builders.kubeconfig(tmp_path / "kubeconfig", f"http://{server.host}:{server.port}")
        (tmp_path / "tmp").mkdir()
        started = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "webhook", f"--kubeconfig={kubeconfig}", f"--listen=127.0.0.1:{port}",
            env={"TMPDIR": str(tmp_path / "tmp"), "PYTHONPATH": str(Path(__file__).parents[2])},
        )  # fmt: skip
        yield started
        if started.returncode is None:
            started.kill()
            await started.wait()


async def ssl_context_of(api: FakeApi) -> ssl.SSLContext:
    """Wait for the caBundle, and return a context that verifies as the API server does."""
    while True:
        bundle = api.objects[CONFIGURATIONS[1]]["webhooks"][0]["clientConfig"].get("caBundle")
        if bundle:
            return ssl.create_default_context(cadata=base64.b64decode(bundle).decode())
        await asyncio.sleep(0.05)


async def test_an_idle_connection_stays_open_for_longer_than_the_servers_default_timeout(
    api: FakeApi, port: int, program: asyncio.subprocess.Process
) -> None:
    """The API server reuses a connection for 90 s, and does not retry a POST on a connection that is closing."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=await serving(api, port, program))
    for pause in (0, 6):
        await asyncio.sleep(pause)
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: webhook\r\n\r\n")
        assert b"200 OK" in await reader.readuntil(b"ok")
    writer.close()
    await writer.wait_closed()


async def serving(api: FakeApi, port: int, program: asyncio.subprocess.Process) -> ssl.SSLContext:
    assert program.returncode is None
    context = await ssl_context_of(api)
    async with httpx.AsyncClient(base_url=f"https://127.0.0.1:{port}", verify=context) as client:
        await ready(client)
    return context


async def ready(client: httpx.AsyncClient) -> None:
    while True:
        try:
            if (await client.get("/readyz")).is_success:
                return
        except httpx.ConnectError:
            pass
        await asyncio.sleep(0.05)


async def test_it_serves_with_a_trusted_certificate_until_sigterm(
    api: FakeApi, port: int, program: asyncio.subprocess.Process, tmp_path: Path
) -> None:
    context = await serving(api, port, program)
    async with httpx.AsyncClient(base_url=f"https://127.0.0.1:{port}", verify=context) as client:
        review = builders.review("CREATE", builders.pod({names.GPU: "1"}))
        response = await client.post("/mutate?timeout=3s", content=review)
        assert builders.patch_of(response.content)
    program.send_signal(signal.SIGTERM)
    assert await program.wait() == 0
    assert list((tmp_path / "tmp").iterdir()) == [], "the key is left behind"
