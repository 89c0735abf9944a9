"""Requests to the admin REST, and to the API server before it: JSON in and out, and event streams."""

import contextlib
import http.client
import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import vgpu
from vgpu.cli.cluster import staleness
from vgpu.cli.cluster.connection import server_url
from vgpu.cli.cluster.connection.refused_request import refused, unanswered
from vgpu.cli.cluster.connection.rest_endpoint import PREFIX, RestEndpoint
from vgpu.cli.failure import NO_ANSWER, CommandFailed

TIMEOUT_S: Final = 30.0
SILENCE_S: Final = 60.0  # of an event stream; the server sends a heartbeat every 15 s
MAX_ANSWER: Final = 256 << 20
MAX_BODY: Final = 1 << 20
PAGE: Final = 1000
AGENT: Final = f"vgpu/{vgpu.__version__}"

Answer = http.client.HTTPResponse | urllib.error.HTTPError  # an error's answer can be read like any other
Query = Mapping[str, str | int | bool | Sequence[str]]


class Rest:
    """A client. Every method raises CommandFailed.

    `warn` takes a line for people where an answer is old, each line once; `stale` has the lines of the last answers.
    """

    def __init__(self, endpoint: RestEndpoint, warn: Callable[[str], None] = lambda _: None) -> None:
        self.endpoint = endpoint
        self.warn = warn
        self.stale: dict[str, list[str]] = {}
        self._warned: set[str] = set()
        handlers: list[urllib.request.BaseHandler] = [_NoRedirect()]
        if endpoint.tls is not None:
            handlers.append(urllib.request.HTTPSHandler(context=endpoint.tls))
        if server_url.is_loopback(endpoint.url):  # a proxy of http_proxy would read the token
            handlers.append(urllib.request.ProxyHandler({}))
        self._opener = urllib.request.build_opener(*handlers)

    def get(self, path: str, query: Query | None = None) -> Any:
        """GET an object."""
        return self._json("GET", path, query)

    def post(self, path: str, body: Any = None, query: Query | None = None) -> Any:
        """POST a body, or none."""
        return self._json("POST", path, query, body)

    def delete(self, path: str, body: Any = None) -> Any:
        """DELETE an object."""
        return self._json("DELETE", path, None, body)

    def text(self, path: str, query: Query | None = None, most: int = MAX_ANSWER) -> str:
        """GET a text, of which no more than `most` bytes are read."""
        with self._opened("GET", path, query, None, TIMEOUT_S) as response:
            return response.read(most).decode(errors="replace")

    def items(self, path: str, query: Query | None = None, most: int | None = None) -> list[dict[str, Any]]:
        """GET a list, page by page; no further page where there are `most` items."""
        found: list[dict[str, Any]] = []
        cursor = ""
        while True:
            page = self.get(path, {**(query or {}), "limit": PAGE, **({"cursor": cursor} if cursor else {})})
            found += page["items"]
            cursor = page["nextCursor"]
            if not cursor or (most is not None and len(found) >= most):
                return found

    def events(self, path: str, query: Query | None = None) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the events of a stream until the server ends it: kind and data."""
        with self._opened("GET", path, query, None, SILENCE_S) as response:
            kind = ""
            for line in _lines(response):
                if line.startswith("event: "):
                    kind = line.removeprefix("event: ")
                elif line.startswith("data: "):
                    yield kind, json.loads(line.removeprefix("data: "))
                elif line.startswith("retry: "):
                    yield "open", {}
                elif line.startswith(":"):
                    yield "heartbeat", {}

    def pass_on(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], timeout: float) -> Answer:
        """Send a browser's request; return the answer, also where it is an error. `path` is written after the site."""
        url = f"{self.endpoint.url.removesuffix(PREFIX)}{path}"
        sent = {**headers, **self.endpoint.headers, "User-Agent": AGENT}
        request = urllib.request.Request(url, body, sent, method=method)  # noqa: S310 - endpoint checks the scheme
        try:
            answer: Answer = self._opener.open(request, timeout=timeout)
        except urllib.error.HTTPError as error:
            return error
        except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
            raise self._no_answer(error) from error
        return answer

    def _no_answer(self, error: Exception) -> CommandFailed:
        return unanswered(error, self.endpoint)

    def _json(self, method: str, path: str, query: Query | None, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        with self._opened(method, path, query, data, TIMEOUT_S) as response:
            read = response.read(MAX_ANSWER)
        try:
            answer = json.loads(read)
        except (ValueError, RecursionError) as error:
            raise CommandFailed(f"{self.endpoint.name}: no JSON answer; is this the admin REST?", NO_ANSWER) from error
        self._note_staleness(path, answer)
        return answer

    def _note_staleness(self, path: str, answer: Any) -> None:
        self.stale[path] = staleness.lines(path, answer)
        for line in self.stale[path]:
            if line not in self._warned:
                self._warned.add(line)
                self.warn(line)

    @contextlib.contextmanager
    def _opened(
        self, method: str, path: str, query: Query | None, body: bytes | None, timeout: float
    ) -> Iterator[http.client.HTTPResponse]:
        text = urllib.parse.urlencode({key: _text(value) for key, value in (query or {}).items()}, doseq=True)
        url = f"{self.endpoint.url}{urllib.parse.quote(path)}{f'?{text}' if text else ''}"
        headers = {**self.endpoint.headers, "Accept": "application/json, text/event-stream", "User-Agent": AGENT}
        if body is not None:
            headers["Content-Type"] = "application/json"
        request = urllib.request.Request(url, body, headers, method=method)  # noqa: S310 - endpoint checks the scheme
        try:
            with self._opener.open(request, timeout=timeout) as response:
                yield response
        except urllib.error.HTTPError as error:
            raise refused(error, self.endpoint) from error
        except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
            raise self._no_answer(error) from error


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would send the token elsewhere."""

    def redirect_request(self, *_: Any) -> None:
        """Follow none."""


def _lines(response: http.client.HTTPResponse) -> Iterator[str]:
    """Yield lines until the end of the stream, or a failure: then the caller connects again."""
    with contextlib.suppress(OSError, http.client.HTTPException):
        while line := response.readline(1 << 20):
            yield line.decode(errors="replace").rstrip("\r\n")


def _text(value: str | int | bool | Sequence[str]) -> str | Sequence[str]:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) else value
