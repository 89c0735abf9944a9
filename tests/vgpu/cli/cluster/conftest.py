"""An admin REST of fixed answers, on a real socket, and the command line program against it."""

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from typer.testing import CliRunner

from limiter.host import Host
from tests.vgpu.cli.cluster import canned
from vgpu.cli import app

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)


@dataclass
class Server:
    """The answers by method and path, and the requests that came."""

    url: str = ""
    answers: dict[str, Any] = field(default_factory=lambda: dict(canned.ALL))
    requests: list[tuple[str, str, dict[str, list[str]], dict[str, str], Any]] = field(default_factory=list)


def handler(server: Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer("GET", None)

        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            self._answer("POST", json.loads(self.rfile.read(length)) if length else None)

        def _answer(self, method: str, body: Any) -> None:
            parts = urlsplit(self.path)
            server.requests.append((method, parts.path, parse_qs(parts.query), dict(self.headers.items()), body))
            key = f"{method} {parts.path.rpartition('/proxy')[2] or parts.path}"
            status, found = server.answers.get(key, (404, {"detail": f"{parts.path} does not exist"}))
            data = found.encode() if isinstance(found, str) else json.dumps(found).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
            """Write nothing."""

    return Handler


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    http = ThreadingHTTPServer(("127.0.0.1", 0), handler(made))
    made.url = f"http://127.0.0.1:{http.server_port}"
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield made
    http.shutdown()
    http.server_close()
    thread.join()


def run(
    *arguments: str, home: Path = Path("/nonexistent"), is_plugin: bool = False, **environment: str
) -> tuple[int, str]:
    """Return the exit code, and stdout followed by stderr."""
    slept: list[float] = []
    program = app.build(
        environment, Host(lambda: 0, slept.append, lambda: "id"), home, lambda: NOW, is_plugin=is_plugin
    )
    outcome = CliRunner().invoke(program, arguments, env={"COLUMNS": "100", "TERM": "dumb"})
    if outcome.exception and not isinstance(outcome.exception, SystemExit):
        raise outcome.exception
    return outcome.exit_code, outcome.output
