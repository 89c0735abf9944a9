"""A simulated API server, and an HTTP client of it."""

import itertools
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import httpx
import pytest

from vgpu.simulator.api import server
from vgpu.simulator.api.cluster import InMemoryCluster


@pytest.fixture
def cluster() -> InMemoryCluster:
    numbers = itertools.count(1)
    return server.make_cluster(lambda: datetime(2026, 1, 1, tzinfo=UTC), lambda: f"{next(numbers):08x}-uid")


@pytest.fixture
async def url(cluster: InMemoryCluster) -> AsyncIterator[str]:
    async with server.serving(cluster) as address:
        yield address


@pytest.fixture
async def http(url: str) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=url, verify=False) as client:
        yield client
