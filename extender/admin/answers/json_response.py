"""Successful answers: JSON with an ETag, so that a client that polls gets 304 where nothing has changed."""

from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from extender.web import etags

JSON = "application/json"


def answer(request: Request, value: Any) -> Response:
    """Write a value; 304 where the client's If-None-Match names the same content."""
    return answer_bytes(request, msgspec.json.encode(value))


def answer_bytes(request: Request, body: bytes) -> Response:
    """Answer with JSON that is encoded already."""
    tag = etags.of(body)
    headers = {"ETag": tag, "Cache-Control": "private, no-cache", "Vary": "Authorization, X-Vgpu-Token"}
    if etags.is_known(tag, request.headers.get("if-none-match", "")):
        return Response(status_code=304, headers=headers)
    return Response(body, headers=headers, media_type=JSON)
