"""The verbs' HTTP, as a client sees it."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from starlette.requests import ClientDisconnect

from extender.protocol import asgi
from extender.protocol.asgi import HttpRequest, Reply, Route


async def echo(request: HttpRequest) -> Reply:
    pieces = [piece async for piece in request.chunks if piece]
    return Reply(f"{request.said_length} {b'|'.join(pieces).decode()}".encode(), asgi.TEXT)


APP = asgi.application({"/echo": Route("POST", echo)})


async def ask(method: str, path: str, content: Any = b"") -> httpx.Response:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(APP), base_url="http://x") as client:
        return await client.request(method, path, content=content)


async def test_a_body_and_its_length_reach_the_handler() -> None:
    reply = await ask("POST", "/echo", b"abc")
    assert (reply.status_code, reply.text) == (200, "3 abc")
    assert (reply.headers["content-type"], reply.headers["content-length"]) == ("text/plain; charset=utf-8", "5")


async def test_a_body_in_pieces_arrives_piece_by_piece() -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"a"
        yield b"b"

    assert "a|b" in (await ask("POST", "/echo", pieces())).text


@pytest.mark.parametrize(
    ("method", "path", "status"), [("GET", "/echo", 405), ("POST", "/", 404), ("POST", "/echo/", 404)]
)
async def test_another_path_or_method_is_refused(method: str, path: str, status: int) -> None:
    assert (await ask(method, path)).status_code == status


async def test_a_client_that_goes_away_ends_its_request() -> None:
    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async def send(_: Any) -> None:
        pytest.fail("a reply was sent")

    with pytest.raises(ClientDisconnect):
        await APP({"type": "http", "path": "/echo", "method": "POST", "headers": []}, receive, send)


async def test_a_websocket_is_closed() -> None:
    sent = list[Any]()

    async def receive() -> dict[str, Any]:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        sent.append(message["type"])

    await APP({"type": "websocket", "path": "/echo", "headers": []}, receive, send)
    assert sent == ["websocket.close"]
