"""Successful answers: JSON with an ETag, so that a client that polls gets 304 where nothing has changed."""

import hashlib
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

JSON = "application/json"


def answer(request: Request, value: Any) -> Response:
    """Write a value; 304 where the client's If-None-Match names the same content."""
    return answer_bytes(request, msgspec.json.encode(value))


def answer_bytes(request: Request, body: bytes) -> Response:
    """Answer with JSON that is encoded already."""
    tag = f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'
    headers = {"ETag": tag, "Cache-Control": "private, no-cache", "Vary": "Authorization, X-Vgpu-Token"}
    if tag in _tags(request.headers.get("if-none-match", "")):
        return Response(status_code=304, headers=headers)
    return Response(body, headers=headers, media_type=JSON)


def _tags(header: str) -> set[str]:
    return {each.strip().removeprefix("W/") for each in header.split(",")}
