"""The page on loopback: only below the secret, with the user's token, which never leaves the program."""

import http.client
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator

import httpx
import pytest

from tests.vgpu.cli.cluster.conftest import Server, run
from vgpu.cli.cluster.connection.rest import MAX_BODY
from vgpu.cli.cluster.connection.rest_endpoint import RestEndpoint
from vgpu.cli.cluster.page_proxy import PageServer, Upstream
from vgpu.cli.failure import NO_ANSWER

SECRET = "0123456789abcdef"


@pytest.fixture
def serve(server: Server) -> Iterator[Callable[..., str]]:
    running: list[tuple[PageServer, threading.Thread]] = []

    def start(find: Callable[[], RestEndpoint] | None = None) -> str:
        found = find or (lambda: RestEndpoint(f"{server.url}/api/v1", {"X-Vgpu-Token": "token"}, None, "the REST"))
        made = PageServer(0, SECRET, Upstream(found))
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        running.append((made, thread))
        return made.url

    yield start
    for made, thread in running:
        made.shutdown()
        made.server_close()
        thread.join()


def test_a_request_is_passed_on_with_the_token_and_its_answer_back(serve: Callable[..., str], server: Server) -> None:
    answer = httpx.get(f"{serve()}api/v1/gpus?limit=1")
    assert answer.status_code == 200
    assert answer.json() == server.answers["GET /api/v1/gpus"][1]
    ((_, path, query, headers, _),) = server.requests
    assert (path, query, headers["X-Vgpu-Token"]) == ("/api/v1/gpus", {"limit": ["1"]}, "token")


@pytest.mark.parametrize("path", ["", "api/v1/gpus", f"{SECRET[:-1]}x/api/v1/gpus", SECRET])
def test_without_the_secret_nothing_is_passed_on(serve: Callable[..., str], server: Server, path: str) -> None:
    site = serve().removesuffix(f"{SECRET}/")
    answer = httpx.get(f"{site}{path}")
    assert answer.status_code == 404
    assert server.requests == []
    assert SECRET not in answer.text


def test_what_a_browser_adds_is_not_passed_on(serve: Callable[..., str], server: Server) -> None:
    httpx.get(f"{serve()}api/v1/gpus", headers={"Cookie": "a=b", "X-Vgpu-Token": "other", "Origin": "http://evil"})
    headers = server.requests[0][3]
    assert headers["X-Vgpu-Token"] == "token"
    assert not {"Cookie", "Origin"} & headers.keys()


def test_an_error_of_the_rest_is_an_answer(serve: Callable[..., str], server: Server) -> None:
    server.answers["POST /api/v1/simulate"] = (422, {"detail": "pods: is missing"})
    answer = httpx.post(f"{serve()}api/v1/simulate", json={})
    assert (answer.status_code, answer.json()) == (422, {"detail": "pods: is missing"})


def test_an_expired_token_is_replaced_once(serve: Callable[..., str], server: Server) -> None:
    tokens = iter(["expired", "fresh"])
    server.answers["GET /api/v1/gpus"] = (401, {"detail": "expired"})
    url = serve(lambda: RestEndpoint(f"{server.url}/api/v1", {"X-Vgpu-Token": next(tokens)}, None, "the REST"))
    assert httpx.get(f"{url}api/v1/gpus").status_code == 401
    assert [request[3]["X-Vgpu-Token"] for request in server.requests] == ["expired", "fresh"]


def test_where_nothing_answers_the_page_is_told_so(serve: Callable[..., str]) -> None:
    url = serve(lambda: RestEndpoint("http://127.0.0.1:1/api/v1", {}, None, "the REST"))
    answer = httpx.get(f"{url}api/v1/gpus")
    assert answer.status_code == 502
    assert "the REST does not answer" in answer.text


def test_a_page_says_in_words_that_the_server_starts_and_is_loaded_again(
    serve: Callable[..., str], server: Server
) -> None:
    """The API server answers for a Service without pods, and its answer is JSON for programs."""
    status = {"kind": "Status", "message": 'no endpoints available for service "<vgpu-admin>"', "code": 503}
    server.answers["GET /"] = (503, status)
    answer = httpx.get(serve(), headers={"Accept": "text/html,*/*;q=0.8"})
    assert (answer.status_code, answer.headers["Content-Type"]) == (503, "text/html; charset=utf-8")
    assert "no endpoints available for service &quot;&lt;vgpu-admin&gt;&quot;" in answer.text
    assert 'http-equiv="refresh"' in answer.text
    assert "kind" not in answer.text
    server.answers["GET /"] = (403, {"detail": "you may not"})
    refused = httpx.get(serve(), headers={"Accept": "text/html"})
    assert (refused.status_code, "you may not" in refused.text, "refresh" in refused.text) == (403, True, False)
    assert httpx.get(serve(), headers={"Accept": "*/*"}).json() == {"detail": "you may not"}


def test_a_server_that_does_not_have_the_page_is_named(server: Server) -> None:
    server.answers["GET /"] = (503, {"message": 'no endpoints available for service "vgpu-admin"'})
    code, output = run("dashboard", "--no-browser", "--server", server.url)
    assert (code, output) == (NO_ANSWER, 'vgpu dashboard: no endpoints available for service "vgpu-admin"\n')


@pytest.mark.parametrize(
    ("length", "status", "said"),
    [
        (str(MAX_BODY + 1), 413, f"above {MAX_BODY} bytes"),
        ("9" * 40, 413, "more than 12 digits"),
        ("0" * 12 + str(MAX_BODY + 1), 413, "more than 12 digits"),
        ("9" * 5000, 413, "more than 12 digits"),  # above Python's limit for int()
        ("-1", 400, "no whole number"),
        ("x", 400, "no whole number"),
        ("", 400, "no whole number"),
        ("\u00b2", 400, "no whole number"),  # a digit to str.isdigit(), and no number to int()
    ],
)
def test_a_content_length_that_is_too_long_or_no_number_is_refused(
    serve: Callable[..., str], server: Server, length: str, status: int, said: str
) -> None:
    url = httpx.URL(serve())
    connection = http.client.HTTPConnection(str(url.host), url.port or 0, timeout=10)
    connection.putrequest("POST", f"{url.path}api/v1/simulate")
    connection.putheader("Content-Length", length)
    connection.endheaders()
    answer = connection.getresponse()
    assert (answer.status, said in answer.read().decode()) == (status, True)
    assert server.requests == []
    connection.close()


def test_zeros_in_front_of_a_content_length_do_no_harm(serve: Callable[..., str], server: Server) -> None:
    server.answers["POST /api/v1/simulate"] = (200, {"placed": 1})
    answer = httpx.post(f"{serve()}api/v1/simulate", content=b"{}", headers={"Content-Length": "000000000002"})
    assert (answer.status_code, server.requests[0][4]) == (200, {})


@pytest.mark.heavy
def test_sigterm_ends_a_dashboard_of_a_background_job(server: Server) -> None:
    """A shell's background jobs ignore SIGINT; the dashboard took over its handler for SIGTERM, and ran for ever."""
    server.answers["GET /"] = (200, "page")
    command = [sys.executable, "-m", "vgpu.cli", "dashboard", "--no-browser", "--server", server.url]
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # a child inherits this
    try:
        started = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    finally:
        signal.signal(signal.SIGINT, before)
    with started:
        assert started.stdout is not None
        try:
            assert started.stdout.readline().startswith("http://")
            started.terminate()
            assert started.wait(20) == 0
        finally:
            started.kill()
