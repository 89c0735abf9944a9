"""Serves the administrators' page on loopback, with the rights of the user who started it.

A browser has neither the kubeconfig's certificates nor its tokens. This server has both: it passes a request on to the
admin REST, below an address that contains a secret. Other users of the machine and pages of other sites do not know the
secret, so they cannot use the rights; the page uses relative addresses only, so it never loses the secret.
"""

import contextlib
import hmac
import html
import http.client
import socket
import urllib.error
from collections.abc import Callable, Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from vgpu.adapters import listening
from vgpu.adapters.listening import ListenAddress
from vgpu.cli.cluster.connection.refused_request import refused
from vgpu.cli.cluster.connection.rest import MAX_BODY, Answer, Rest
from vgpu.cli.cluster.connection.rest_endpoint import RestEndpoint
from vgpu.cli.failure import CommandFailed

_ERROR: Final = 400
PASSED_ON: Final = ("Accept", "Accept-Encoding", "Content-Type", "If-None-Match")
PASSED_BACK: Final = (
    "Content-Type", "Content-Encoding", "Vary", "ETag", "Cache-Control", "Content-Security-Policy", "Referrer-Policy",
    "X-Content-Type-Options", "Retry-After",
)  # fmt: skip
CHUNK: Final = 64 << 10
MAX_DIGITS: Final = 12  # of a Content-Length, zeros in front included
RETRY_S: Final = 3
_PAGE: Final = """<!doctype html>
<meta charset="utf-8"><title>vgpushare</title>{retry}
<h1>vgpushare</h1>
<p>{detail}</p>
"""
_RETRY: Final = f'<meta http-equiv="refresh" content="{RETRY_S}">'
_RETRIED: Final = f"The page is loaded again every {RETRY_S} seconds."
SILENCE_S: Final = 60.0  # the REST sends a heartbeat into an event stream every 15 s


class Upstream:
    """The admin REST. Where a token has expired, the endpoint is found again once."""

    def __init__(self, find: Callable[[], RestEndpoint]) -> None:
        """`find` returns the endpoint with a token that is valid now. Raises CommandFailed."""
        self._find = find
        self._rest = Rest(find())

    def check(self) -> None:
        """Raise CommandFailed where the page cannot be had, with what the server says about it."""
        answer = self.open("GET", "/", None, {})
        with contextlib.closing(answer):
            if isinstance(answer, urllib.error.HTTPError):
                raise self.refusal(answer)

    def refusal(self, answer: urllib.error.HTTPError) -> CommandFailed:
        """Return what an answer says that is an error."""
        return refused(answer, self._rest.endpoint)

    def open(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> Answer:
        """Send a request; `path` is below the site. Raises CommandFailed where nothing answers."""
        answer = self._rest.pass_on(method, path, body, headers, SILENCE_S)
        if answer.status != HTTPStatus.UNAUTHORIZED:
            return answer
        answer.close()
        self._rest = Rest(self._find())
        return self._rest.pass_on(method, path, body, headers, SILENCE_S)


class PageServer(ThreadingHTTPServer):
    """Listens on loopback; `url` is the page's address with its secret."""

    daemon_threads = True

    def __init__(self, port: int, secret: str, upstream: Upstream) -> None:
        """`secret` is a part of a path. Raises OSError where the port is taken."""
        self.upstream = upstream
        self.secret = f"/{secret}/"
        host = listening.loopback()
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), _Handler)

    @property
    def url(self) -> str:
        """The address to open."""
        host, port, *_ = self.socket.getsockname()
        return f"http://{ListenAddress(host, port)}{self.secret}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Write nothing: a browser closes connections whenever it likes."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 75
    server: PageServer

    def do_GET(self) -> None:
        """Pass a GET on."""
        self._pass(None)

    def do_POST(self) -> None:
        """Pass a POST on, with its body."""
        length = self.headers.get("Content-Length", "0")
        if not (length.isascii() and length.isdigit()):
            self._refuse(HTTPStatus.BAD_REQUEST, "Content-Length is no whole number")
        elif len(length) > MAX_DIGITS or int(length) > MAX_BODY:
            detail = f"Content-Length is above {MAX_BODY} bytes, or has more than {MAX_DIGITS} digits"
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, detail)
        else:
            self._pass(self.rfile.read(int(length)))

    def _pass(self, body: bytes | None) -> None:
        secret = self.server.secret
        if not hmac.compare_digest(self.path[: len(secret)].encode(), secret.encode()):
            self._refuse(HTTPStatus.NOT_FOUND, "use the whole address that `vgpu dashboard` printed")
            return
        headers = {name: value for name in PASSED_ON if (value := self.headers.get(name))}
        try:
            answer = self.server.upstream.open(self.command, self.path[len(secret) - 1 :], body, headers)
        except CommandFailed as failed:
            self._refuse(HTTPStatus.BAD_GATEWAY, str(failed))
            return
        with contextlib.closing(answer):
            if isinstance(answer, urllib.error.HTTPError) and self._wants_page() and answer.code >= _ERROR:
                self._refuse(answer.code, str(self.server.upstream.refusal(answer)))
            else:
                self._copy(answer)

    def _wants_page(self) -> bool:
        """Whether a browser asks for a page to show, and not the page's script for data."""
        return "text/html" in self.headers.get("Accept", "")

    def _copy(self, answer: Answer) -> None:
        """Write the answer part by part: an event stream has no end."""
        self.send_response(answer.status or HTTPStatus.BAD_GATEWAY)
        for name in PASSED_BACK:
            if value := answer.headers.get(name):
                self.send_header(name, value)
        has_body = answer.status != HTTPStatus.NOT_MODIFIED
        if has_body:
            self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        if has_body:
            for part in _parts(answer):
                self.wfile.write(b"%x\r\n%b\r\n" % (len(part), part))
            self.wfile.write(b"0\r\n\r\n")

    def _refuse(self, status: int, detail: str) -> None:
        """Say what is wrong: as a page that is loaded again where the server may answer later, or as text."""
        self.close_connection = True
        is_page, is_passing = self._wants_page(), status >= HTTPStatus.INTERNAL_SERVER_ERROR
        retry, more = (_RETRY, f" {_RETRIED}") if is_passing else ("", "")
        text = _PAGE.format(retry=retry, detail=html.escape(detail + more)) if is_page else f"{detail}\n"
        data = text.encode(errors="replace")
        self.send_response(status)
        self.send_header("Content-Type", f"text/{'html' if is_page else 'plain'}; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
        """Write nothing: the address contains the secret."""


def _parts(answer: Answer) -> Iterator[bytes]:
    """Yield what has come, until the end of the answer or of its connection."""
    with contextlib.suppress(OSError, http.client.HTTPException, socket.timeout):
        while part := answer.read1(CHUNK):
            yield part
