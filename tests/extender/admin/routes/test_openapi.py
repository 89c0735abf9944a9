"""Requests that schemathesis derives from the OpenAPI document: each answer is one that the document describes."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance

from extender.admin.security.rate_limits import RateLimits
from extender.history import folder
from extender.history.reporting.prices import Prices
from extender.history.reporting.sql_reports import SqlReports
from extender.history.storage import database
from tests.extender.admin.conftest import Opened
from tests.extender.admin.test_server import served
from tests.extender.conftest import World

# The server's thread uses the random module while a strategy draws, and hypothesis takes the use for the strategy's.
pytestmark = pytest.mark.filterwarnings("ignore:Do not use the `random` module:Warning")

CHECKS = [not_a_server_error, status_code_conformance, response_schema_conformance]
ENDLESS = "/api/v1/events"  # its answer is a stream; test_streams and test_server are about it


def check_all(url: str, examples: int) -> dict[str, int]:
    """Send requests to each operation; return how many to each."""
    schema = schemathesis.openapi.from_url(f"{url}/api/v1/openapi.json")
    sent: dict[str, int] = {}
    for found in schema.get_all_operations():
        operation: Any = found.ok()  # type: ignore[union-attr]
        if operation.path == ENDLESS:
            continue
        checked(operation, url, examples, lambda label: sent.update({label: sent.get(label, 0) + 1}))()
    return sent


def checked(operation: Any, url: str, examples: int, note: Callable[[str], object]) -> Callable[[], None]:
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=examples < 100,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy())
    def check(case: Any) -> None:
        note(operation.label)
        response = case.call(base_url=url, timeout=20)
        case.validate_response(response, checks=CHECKS)

    made: Callable[[], None] = check
    return made


async def probed(
    world: World, opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, examples: int
) -> dict[str, int]:
    monkeypatch.setattr(RateLimits, "check", lambda *_: None)
    engine = database.engine(database.sqlite_url(folder.sqlite_file(tmp_path)))
    database.migrate(engine)
    for _ in range(3):
        await world.bind(await world.create_pod(gpu_mem=1024), "n1")
    reports = SqlReports(engine, Prices(), lambda: time.time_ns() // 1_000_000)
    try:
        async with served(opened, reports=reports) as port:
            return await asyncio.to_thread(check_all, f"http://127.0.0.1:{port}", examples)
    finally:
        engine.dispose()


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_many_requests_to_each_operation(
    world: World, opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = await probed(world, opened, tmp_path, monkeypatch, 300)
    assert len(sent) >= 14
    assert min(count for label, count in sent.items()) >= 1


@pytest.mark.heavy
async def test_a_few_requests_to_each_operation(
    world: World, opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(await probed(world, opened, tmp_path, monkeypatch, 1)) >= 14
