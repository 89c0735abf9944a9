"""The metrics over HTTP: one path, answers that are kept for a second, errors that end nothing."""

import asyncio
import threading
from collections.abc import Iterator

import httpx
import pytest

from vgpu.adapters import metrics_server
from vgpu.adapters.metrics import Metric, MetricFamily, MetricKind, Registry
from vgpu.adapters.metrics_server import MetricsApp

METRIC = Metric("vgpu_test_reads_total", MetricKind.COUNTER, "Reads")


class Source:
    """A metric that counts how often it is read."""

    def __init__(self) -> None:
        self.reads = 0
        self.fails = False
        self.threads: set[int] = set()
        self.registry = Registry()
        self.registry.add(self.collect)

    def collect(self) -> Iterator[MetricFamily]:
        self.reads += 1
        self.threads.add(threading.get_ident())
        if self.fails:
            raise ZeroDivisionError
        yield MetricFamily(METRIC, [((), self.reads)])


async def get(app: MetricsApp, path: str = "/metrics", method: str = "GET", accept: str = "") -> httpx.Response:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://node") as client:
        return await client.request(method, path, headers={"accept": accept})


async def test_an_answer_is_kept_for_a_second_for_each_format() -> None:
    source, now = Source(), [0.0]
    app = MetricsApp(source.registry, lambda: now[0])
    texts = [(await get(app)).text for _ in range(3)]
    assert set(texts) == {
        "# HELP vgpu_test_reads_total Reads\n# TYPE vgpu_test_reads_total counter\nvgpu_test_reads_total 1.0\n"
    }
    assert (await get(app, accept="application/openmetrics-text; version=1.0.0")).text.endswith("# EOF\n")
    assert source.reads == 2
    now[0] = 1.0
    assert "2.0" not in (await get(app)).text
    assert source.reads == 3


async def test_clients_at_once_cause_one_reading() -> None:
    source = Source()
    app = MetricsApp(source.registry, lambda: 0.0, blocks=True)
    answers = await asyncio.gather(*(get(app) for _ in range(20)))
    assert {answer.status_code for answer in answers} == {200}
    assert source.reads == 1
    assert threading.get_ident() not in source.threads


async def test_an_error_is_an_answer_and_the_next_reading_is_asked_again(caplog: pytest.LogCaptureFixture) -> None:
    source = Source()
    app = MetricsApp(source.registry, lambda: 0.0)
    source.fails = True
    assert (await get(app)).status_code == 500
    assert "ZeroDivisionError" in caplog.text
    source.fails = False
    assert (await get(app)).status_code == 200


@pytest.mark.parametrize(("path", "method"), [("/", "GET"), ("/metrics/x", "GET"), ("/metrics", "POST")])
async def test_nothing_else_is_served(path: str, method: str) -> None:
    source = Source()
    assert (await get(MetricsApp(source.registry, lambda: 0.0), path, method)).status_code == 404
    assert source.reads == 0


async def test_a_port_that_is_taken_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    server = await asyncio.start_server(lambda _reader, _writer: None, "127.0.0.1", 0)
    address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with asyncio.timeout(5):
        await metrics_server.serve(Registry(), address, lambda: 0.0)
    assert f"{address} cannot be bound" in caplog.text
    server.close()
