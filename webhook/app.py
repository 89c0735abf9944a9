"""The webhook over HTTP: `/mutate`, `/validate`, `/healthz` and `/readyz`."""

from collections.abc import Callable
from typing import Final

from fastapi import FastAPI, Request, Response

from webhook import admission, wire
from webhook.rules import Rules

MAX_BODY: Final = 8 << 20  # the API server limits an object to 3 MiB, and UPDATE sends two objects
_JSON: Final = "application/json"
_TEXT: Final = "text/plain"


def create(rules: Rules, is_ready: Callable[[], bool]) -> FastAPI:
    """Build the application; `is_ready` says whether the cluster's cards are known."""
    app = FastAPI(title="vgpushare webhook", docs_url=None, redoc_url=None, openapi_url=None)

    @app.post("/mutate")
    async def mutate(request: Request) -> Response:
        return await _answer(request, rules, admission.mutating)

    @app.post("/validate")
    async def validate(request: Request) -> Response:
        return await _answer(request, rules, admission.validating)

    @app.get("/healthz")
    async def healthz() -> Response:
        return Response("ok", media_type=_TEXT)

    @app.get("/readyz")
    async def readyz() -> Response:
        if is_ready():
            return Response("ok", media_type=_TEXT)
        return Response("the cluster's cards are not known yet", 503, media_type=_TEXT)

    return app


async def _answer(request: Request, rules: Rules, decide: Callable[[wire.Request, Rules], bytes]) -> Response:
    body = await _body(request)
    if body is None:
        return Response("the body is longer than a review can be", 413, media_type=_TEXT)
    try:
        review = wire.decode(body)
    except wire.MalformedReview as error:
        return Response(str(error), 400, media_type=_TEXT)
    return Response(decide(review, rules), media_type=_JSON)


async def _body(request: Request) -> bytes | None:
    """Read the body; None where it is too long, so that no client can fill this process's memory."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY:
            return None
    return bytes(body)
