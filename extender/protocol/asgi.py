"""The verbs' HTTP: FastAPI's router, without the middlewares of an application, and replies of bytes.

No path has parameters, and no handler wants more of a request than its body. The middlewares of an application took a
tenth of a filter's time. The protocol: https://asgi.readthedocs.io/en/latest/specs/www.html
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from fastapi import APIRouter
from starlette import routing
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send

TEXT: Final = b"text/plain; charset=utf-8"
JSON: Final = b"application/json"
_CONTENT_LENGTH: Final = b"content-length"


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply: the body, its media type, and the status."""

    body: bytes
    media_type: bytes = JSON
    status: int = HTTPStatus.OK


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request: the Content-Length that it says, None where it says none, and its body, piece by piece."""

    said_length: str | None
    chunks: AsyncIterator[bytes]


@dataclass(frozen=True, slots=True)
class Route:
    """A path's handler, and the method that it takes."""

    method: str
    handle: Callable[[HttpRequest], Awaitable[Reply]]


def application(routes: Mapping[str, Route]) -> ASGIApp:
    """Build the application from its routes by path."""
    router = APIRouter(redirect_slashes=False)
    for path, route in routes.items():
        router.routes.append(routing.Route(path, _Endpoint(route.handle), methods=[route.method]))
    return router


@dataclass(frozen=True, slots=True)
class _Endpoint:
    handle: Callable[[HttpRequest], Awaitable[Reply]]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        reply = await self.handle(HttpRequest(_said_length(scope["headers"]), _chunks(receive)))
        headers = [(b"content-type", reply.media_type), (_CONTENT_LENGTH, b"%d" % len(reply.body))]
        await send({"type": "http.response.start", "status": reply.status, "headers": headers})
        await send({"type": "http.response.body", "body": reply.body})


def _said_length(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    return next((value.decode("latin-1") for name, value in headers if name == _CONTENT_LENGTH), None)


async def _chunks(receive: Receive) -> AsyncIterator[bytes]:
    """Yield the pieces of a body. Raises ClientDisconnect: no reply can arrive."""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        yield message.get("body", b"")
        if not message.get("more_body", False):
            return
