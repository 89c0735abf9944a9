"""The admin's listener, over real sockets."""

import asyncio
import contextlib
import os
import resource
import socket
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from extender import admin_service
from extender.admin import connections, server
from extender.admin.exchange.messages import Listener
from extender.admin.exchange.snapshots import ClusterSnapshot
from extender.admin.security import body_limit
from extender.settings import ExtenderSettings
from tests.extender.admin.conftest import CopiedSnapshots, Opened, shown
from tests.extender.conftest import World
from vgpu.domain.errors import UnusableSetting


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


@asynccontextmanager
async def served(opened: Opened, host: str = "127.0.0.1", **parts: Any) -> AsyncIterator[int]:
    port = free_port()
    async with opened(**parts) as admin:
        listener = Listener(host, port, is_loopback=host == "127.0.0.1")
        running = asyncio.create_task(server.serve(listener, admin.app, datetime.now(UTC)))
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


async def test_long_bodies_without_a_length_are_read_slowly_and_short_ones_at_once(opened: Opened) -> None:
    """Twelve bodies of 1 MiB have 192 pieces: a quarter of a second's are read at once, the others take half of one."""
    head = b"POST /api/v1/simulate HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    piece = b"%x\r\n%b\r\n" % (body_limit.PIECE, bytes(body_limit.PIECE))

    async def too_long(port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head + piece * (body_limit.MAX_BODY // body_limit.PIECE + 1))
        assert b"413" in await reader.readline()
        writer.close()

    async with served(opened) as port:
        begun = time.monotonic()
        flood = asyncio.gather(*(too_long(port) for _ in range(12)))
        await asyncio.sleep(0.1)
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
            assert (await client.post("/api/v1/simulate", content=b"{}")).status_code == 422
        assert not flood.done()
        await flood
        assert time.monotonic() - begun > 0.4


@pytest.mark.heavy
async def test_streams_and_lists_under_way_end_with_the_server_and_no_traceback(
    world: World, opened: Opened, caplog: pytest.LogCaptureFixture
) -> None:
    """An open page left a traceback in the log, and held up the end for as long as a request may take."""

    class SilentSource(CopiedSnapshots):
        async def take(self) -> ClusterSnapshot:
            await asyncio.Event().wait()
            raise AssertionError

    async def answered(port: int, path: str) -> tuple[int, str]:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=20) as http:
            answer = await http.get(f"/api/v1/{path}")
            return answer.status_code, answer.text

    async with served(opened) as port:
        streams = [asyncio.create_task(answered(port, "events")) for _ in range(3)]
        await asyncio.sleep(0.3)
        begun = time.monotonic()
    assert time.monotonic() - begun < server.GRACE_S
    assert {await stream for stream in streams} == {(200, "retry: 2000\n\n")}
    async with served(opened, source=SilentSource(shown(world))) as port:
        waiting = asyncio.create_task(answered(port, "gpus"))
        await asyncio.sleep(0.3)
    status, text = await waiting
    assert status == 503
    assert "the admin REST stops" in text
    assert [record for record in caplog.records if record.exc_info] == []


async def test_a_hundred_mebibytes_are_refused_and_the_listener_goes_on(opened: Opened) -> None:
    async with served(opened) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        head = f"POST /api/v1/simulate HTTP/1.1\r\nHost: localhost\r\nContent-Length: {100 << 20}\r\n\r\n"
        writer.write(head.encode() + b"x" * 65536)
        assert b"413" in await asyncio.wait_for(reader.readline(), 10)
        writer.close()
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as http:
            assert (await http.get("/healthz")).text == "ok"


async def test_without_a_certificate_an_open_address_serves_one_of_its_own(opened: Opened) -> None:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    async with served(opened, "0.0.0.0") as port, httpx.AsyncClient(verify=context) as http:
        assert (await http.get(f"https://127.0.0.1:{port}/healthz")).text == "ok"


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
        ExtenderSettings(**settings)


@pytest.mark.parametrize(
    ("settings", "url"),
    [
        ({"admin_listen": "[::]:9871"}, ""),
        ({"admin_listen": "[::]:9871", "admin_advertise_address": "10.0.0.1"}, "https://10.0.0.1:9871"),
        ({"admin_listen": "0.0.0.0:99", "admin_advertise_address": "fd00::1"}, "https://[fd00::1]:99"),
        ({"admin_listen": "10.0.0.7:9871"}, "https://10.0.0.7:9871"),
        ({"admin_listen": "127.0.1.1:9871"}, "http://127.0.1.1:9871"),
        ({"admin_listen": "127.0.1.1:9871", "admin_tls_cert": "/c", "admin_tls_key": "/k"}, "https://127.0.1.1:9871"),
        ({"admin_listen": "off", "admin_advertise_address": "10.0.0.1"}, ""),
    ],
)
def test_by_which_url_other_replicas_reach_it(settings: dict[str, Any], url: str) -> None:
    assert ExtenderSettings(admin_auth="kubernetes", **settings).admin_url == url


def test_a_token_file_must_hold_a_token(tmp_path: Path) -> None:
    for content in ("", "short"):
        (tmp_path / "token").write_text(content)
        with pytest.raises(UnusableSetting, match="must hold 16"):
            admin_service._token(tmp_path / "token")
    with pytest.raises(UnusableSetting, match="cannot be read"):
        admin_service._token(tmp_path / "none")


@pytest.mark.heavy
async def test_connections_are_bounded_and_silent_ones_end(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "most_connections", lambda: 3)
    monkeypatch.setattr(connections, "SILENCE_S", 0.5)
    async with served(opened) as port:
        silent = [await connected(port, f"127.0.0.{number}") for number in range(2, 8)]
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=20) as http:
            assert (await http.get("/healthz")).text == "ok"
        assert await asyncio.wait_for(silent[0][0].read(), 10) == b""
        for _, writer in silent:
            writer.close()


async def connected(port: int, address: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Open a connection from an address."""
    return await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))


async def test_the_connections_of_one_address_leave_as_many_for_others(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "most_connections", lambda: 8)
    monkeypatch.setattr(connections, "SILENCE_S", 60.0)
    async with served(opened) as port:
        many = [await connected(port, "127.0.0.2") for _ in range(20)]
        for reader, _ in many[4:]:
            with contextlib.suppress(ConnectionError):
                assert await asyncio.wait_for(reader.read(), 10) == b""
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=5) as http:
            assert (await http.get("/healthz")).text == "ok"
        assert not any(reader.at_eof() for reader, _ in many[:4])
        for _, writer in many:
            writer.close()
        await asyncio.sleep(0.1)
        again = [await connected(port, "127.0.0.2") for _ in range(3)]
        await asyncio.sleep(0.1)
        assert not any(reader.at_eof() for reader, _ in again)
        for _, writer in again:
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


async def test_heartbeats_do_not_use_up_the_callers_requests(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("extender.admin.answers.event_response.HEARTBEAT_S", 0.002)
    async with served(opened) as port, httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as http:
        async with http.stream("GET", "/api/v1/events") as stream:
            lines = stream.aiter_lines()
            beats = 0
            async with asyncio.timeout(20):
                while beats < 150:  # the burst of requests is 100
                    beats += (await anext(lines)) == ": heartbeat"
        assert (await http.get("/api/v1/nodes")).status_code == 200
