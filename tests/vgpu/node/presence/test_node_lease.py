"""The node's Lease: one PUT for each renewal, and a read only after a conflict or an unknown outcome."""

import itertools
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.vgpu.adapters.test_reflector import connect
from vgpu.adapters.kubernetes import lease
from vgpu.adapters.kubernetes.client import KubernetesClient
from vgpu.domain.errors import KubernetesError
from vgpu.domain.identifiers import Namespace, NodeName
from vgpu.node.presence.node_lease import NodeLease
from vgpu.simulator.api import server

NS = Namespace("ns")

N1 = NodeName("n1")

PATH = lease.path("ns", "vgpu-node-n1")


class CountingClient(KubernetesClient):
    """Records requests.

    `fails` lets the next PUT fail after it was carried out; `writes` of the next reads are followed by another write.
    """

    requests: list[str]
    fails: bool
    writes: int = 0

    async def get(self, path: str, params: Any = None, *, timeout: float = 30) -> bytes:
        self.requests.append("GET")
        answer = await super().get(path, params, timeout=timeout)
        if self.writes:
            self.writes -= 1
            await self.patch(path, {"metadata": {"labels": {"writes": str(self.writes)}}})
        return answer

    async def put(self, path: str, body: Any, *, timeout: float = 30) -> bytes:
        self.requests.append("PUT")
        answer = await super().put(path, body, timeout=timeout)
        if self.fails:
            self.fails = False
            raise KubernetesError(0, "TimeoutError", "")
        return answer

    async def spec(self) -> Any:
        return json.loads(await super().get(PATH))["spec"]


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[CountingClient]:
    numbers = itertools.count(1)
    api = server.make_cluster(lambda: datetime.now(UTC), lambda: f"{next(numbers):08x}-uid")
    async with server.serving(api) as url, await connect(url, tmp_path) as made:
        made.__class__ = CountingClient
        assert isinstance(made, CountingClient)
        made.requests, made.fails = [], False
        yield made


async def test_a_renewal_is_one_request(client: CountingClient) -> None:
    node = NodeLease(client, NS, N1, lambda: datetime.now(UTC))
    await node.renew(3)
    client.requests.clear()
    stamps = set()
    for _ in range(3):
        await node.renew(30)
        stamps.add((await client.spec())["renewTime"])
    await node.release()
    assert client.requests == ["PUT"] * 4
    assert len(stamps) == 3
    assert (await client.spec())["holderIdentity"] == ""
    await node.renew(3)
    assert (await client.spec())["holderIdentity"] == "n1"


async def test_after_a_conflict_a_deletion_or_no_answer_the_next_renewal_reads(client: CountingClient) -> None:
    node = NodeLease(client, NS, N1, lambda: datetime.now(UTC))
    await node.renew(3)
    await client.patch(PATH, {"metadata": {"labels": {"a": "b"}}})
    with pytest.raises(KubernetesError):
        await node.renew(3)
    await node.renew(3)
    client.fails = True
    with pytest.raises(KubernetesError):
        await node.renew(3)
    await node.renew(3)
    await client.delete(PATH)
    with pytest.raises(KubernetesError):
        await node.renew(3)
    await node.renew(3)
    assert (await client.spec())["holderIdentity"] == "n1"


async def test_a_lease_that_another_program_holds_is_not_taken(client: CountingClient) -> None:
    await lease.renew(client, "ns", "vgpu-node-n1", "other", 60, datetime.now(UTC))
    with pytest.raises(KubernetesError, match="held by another program"):
        await NodeLease(client, NS, N1, lambda: datetime.now(UTC)).renew(3)


async def test_a_renewal_that_arrives_late_does_not_keep_the_lease(client: CountingClient) -> None:
    """A renewal whose task was cancelled is carried out between the release's read and its write."""
    node = NodeLease(client, NS, N1, lambda: datetime.now(UTC))
    await node.renew(30)
    client.fails = True
    with pytest.raises(KubernetesError):
        await node.renew(30)
    client.writes = 2
    await node.release()
    assert (await client.spec())["holderIdentity"] == ""


async def test_a_release_that_meets_another_write_each_time_fails(client: CountingClient) -> None:
    await lease.renew(client, "ns", "vgpu-node-n1", "n1", 60, datetime.now(UTC))
    client.writes = 100
    with pytest.raises(KubernetesError, match="written at the same time"):
        await lease.release(client, "ns", "vgpu-node-n1", "n1", datetime.now(UTC))
