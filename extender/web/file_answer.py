"""A file as an HTTP answer: its media type, its ETag, and what a browser may do with the page."""

import gzip
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import PurePosixPath
from typing import Final

from fastapi import Request, Response

from extender.web import etags

MEDIA_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
HEADERS: Final = {
    "Cache-Control": "no-cache",  # the browser asks with the ETag: after an upgrade the page and its files fit together
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "Referrer-Policy": "no-referrer",
    "Vary": "Accept-Encoding",
    "X-Content-Type-Options": "nosniff",
}


@dataclass(frozen=True, slots=True)
class File:
    """A file of the page, as it is and as gzip."""

    body: bytes
    packed: bytes
    media_type: str
    etag: str


def read(name: str, body: bytes) -> File:
    """Return a file with its media type, by the ending of its name."""
    return File(body, gzip.compress(body, mtime=0), MEDIA_TYPES[PurePosixPath(name).suffix], etags.of(body))


def of(file: File | None, request: Request) -> Response:
    """Return the answer: 404 for no file, 304 where the request's If-None-Match names the file's ETag."""
    if file is None:
        return Response("there is no such file\n", HTTPStatus.NOT_FOUND, media_type="text/plain")
    headers = {**HEADERS, "ETag": f"W/{file.etag}"}  # weak, because it names both codings
    if etags.is_known(file.etag, request.headers.get("if-none-match", "")):
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(file.packed, headers={**headers, "Content-Encoding": "gzip"}, media_type=file.media_type)
    return Response(file.body, headers=headers, media_type=file.media_type)
