"""The admin's listener in a thread of its own, over real sockets."""

import asyncio
import contextlib
import json
import os
import resource
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from extender import admin_service
from extender.admin import connections, server
from extender.admin.server import AdminServer, Listener
from extender.settings import Settings
from tests.extender.conftest import World
from vgpu.errors import UnusableSetting


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


@asynccontextmanager
async def served(world: World, tmp_path: Path, **settings: Any) -> AsyncIterator[int]:
    port = free_port()
    seen = world.seen
    chosen = Settings.model_construct(kubeconfig=tmp_path / "kubeconfig", admin_listen=f"127.0.0.1:{port}", **settings)
    object.__setattr__(seen, "settings", chosen)
    made = admin_service.admin_server(seen, world.leader, world.history, lambda: "id", "test")
    assert made is not None
    running = asyncio.create_task(made.run())
    try:
        await until_open(port)
        yield port
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def until_open(port: int) -> None:
    async with asyncio.timeout(20):
        while True:
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                return
            await asyncio.sleep(0.02)


async def test_a_stream_shows_a_pod_that_is_created_and_stops_with_the_server(world: World, tmp_path: Path) -> None:
    async with served(world, tmp_path) as port, httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as http:
        assert (await http.get("/api/v1/summary")).json()["gpus"] == 6
        async with http.stream("GET", "/api/v1/events?kind=pod") as stream:
            assert stream.headers["content-type"].startswith("text/event-stream")
            lines = stream.aiter_lines()
            assert await anext(lines) == "retry: 2000"
            await asyncio.sleep(0.1)
            world.clock.seconds += 1
            await world.create_pod(gpu_mem=256)
            async with asyncio.timeout(10):
                while not (line := await anext(lines)).startswith("data: "):
                    world.clock.seconds += 1
            event = json.loads(line.removeprefix("data: "))
            assert (event["type"], event["object"]["name"]) == ("ADDED", "pod-1")


async def test_a_hundred_mebibytes_are_refused_and_the_listener_goes_on(world: World, tmp_path: Path) -> None:
    async with served(world, tmp_path) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        head = f"POST /api/v1/simulate HTTP/1.1\r\nHost: localhost\r\nContent-Length: {100 << 20}\r\n\r\n"
        writer.write(head.encode() + b"x" * 65536)
        assert b"413" in await asyncio.wait_for(reader.readline(), 10)
        writer.close()
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as http:
            assert (await http.get("/healthz")).text == "ok"


async def test_without_a_certificate_an_open_address_serves_one_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:  # noqa: ARG001
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"ok"})

    @asynccontextmanager
    async def opened() -> AsyncIterator[Any]:
        yield app

    monkeypatch.setattr(server, "AGAIN_S", 0.05)
    port = free_port()
    made = AdminServer(Listener("127.0.0.1", port, is_loopback=False), opened, lambda: datetime.now(UTC))
    running = asyncio.create_task(made.run())
    await until_open(port)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    async with httpx.AsyncClient(verify=context) as http:
        assert (await http.get(f"https://127.0.0.1:{port}/")).text == "ok"
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_port_in_use_does_not_end_the_extender_and_is_tried_again(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "AGAIN_S", 0.05)
    port = free_port()
    other = socket.create_server(("127.0.0.1", port))
    object.__setattr__(
        world.seen, "settings",
        Settings.model_construct(kubeconfig=tmp_path / "kubeconfig", admin_listen=f"127.0.0.1:{port}"),
    )  # fmt: skip
    made = admin_service.admin_server(world.seen, world.leader, world.history, lambda: "id", "test")
    assert made is not None
    running = asyncio.create_task(made.run())
    await asyncio.sleep(0.2)
    assert not running.done()
    other.close()
    async with asyncio.timeout(10):
        while True:
            with contextlib.suppress(httpx.HTTPError):
                async with httpx.AsyncClient() as http:
                    if (await http.get(f"http://127.0.0.1:{port}/healthz")).text == "ok":
                        break
            await asyncio.sleep(0.02)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"admin_listen": "0.0.0.0:9871"}, "give admin-auth"),
        ({"admin_auth": "token"}, "admin-token-file"),
        ({"admin_tls_cert": "/x"}, "admin-tls-key"),
        ({"admin_listen": "nonsense"}, "IP:PORT"),
    ],
)
def test_settings_that_leave_the_rest_open_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Settings(**settings)


def test_a_token_file_must_hold_a_token(tmp_path: Path) -> None:
    for content in ("", "short"):
        (tmp_path / "token").write_text(content)
        with pytest.raises(UnusableSetting, match="must hold 16"):
            admin_service._token(tmp_path / "token")
    with pytest.raises(UnusableSetting, match="cannot be read"):
        admin_service._token(tmp_path / "none")


async def test_connections_are_bounded_and_silent_ones_end(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "most_connections", lambda: 3)
    monkeypatch.setattr(connections, "SILENCE_S", 0.5)
    async with served(world, tmp_path) as port:
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(6)]
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=20) as http:
            assert (await http.get("/healthz")).text == "ok"
        assert await asyncio.wait_for(silent[0][0].read(), 10) == b""
        for _, writer in silent:
            writer.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root raises the hard limit again")
def test_half_of_the_file_descriptors_are_for_connections() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 300), min(hard, 1000)))
        assert connections.most_connections() == min(hard, 1000) // 2
    finally:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_heartbeats_do_not_use_up_the_callers_requests(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("extender.admin.event_response.HEARTBEAT_S", 0.002)
    async with served(world, tmp_path) as port, httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as http:
        async with http.stream("GET", "/api/v1/events") as stream:
            lines = stream.aiter_lines()
            beats = 0
            async with asyncio.timeout(20):
                while beats < 150:  # the burst of requests is 100
                    beats += (await anext(lines)) == ": heartbeat"
        assert (await http.get("/api/v1/nodes")).status_code == 200
