"""The simulated API server, as the Kubernetes client of vgpushare uses it: reflector, Lease and patches."""

import asyncio
import json
import random
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests import kubeconfigs
from vgpu.adapters.kubernetes import lease, reflector
from vgpu.adapters.kubernetes.client import KubernetesClient, PatchKind
from vgpu.domain.errors import KubernetesError
from vgpu.simulator.api.cluster import InMemoryCluster

PODS = "/api/v1/namespaces/default/pods"


def pod(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "main"}], **spec}}


class ObjectStore:
    """A handler that keeps the objects of a reflector by name."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.lists = 0

    def replace(self, objects: list[Any], _: str) -> None:
        self.names, self.lists = {obj["metadata"]["name"] for obj in objects}, self.lists + 1

    def upsert(self, obj: Any) -> None:
        self.names.add(obj["metadata"]["name"])

    def delete(self, obj: Any) -> None:
        self.names.discard(obj["metadata"]["name"])

    async def until(self, names: set[str]) -> None:
        async with asyncio.timeout(30):
            while self.names != names:
                await asyncio.sleep(0.01)


@pytest.fixture
async def client(url: str, tmp_path: Any) -> AsyncIterator[KubernetesClient]:
    async with await KubernetesClient.connect(str(kubeconfigs.write(tmp_path, url)), user_agent="test") as connected:
        yield connected


async def test_our_reflector_follows_every_change(client: KubernetesClient, cluster: InMemoryCluster) -> None:
    store = ObjectStore()
    running = asyncio.create_task(reflector.Reflector(client, "/api/v1/pods", store, jitter=random.random).run())
    for n in range(3):
        await client.post(PODS, pod(f"p{n}"))
    await store.until({"p0", "p1", "p2"})
    await client.delete(f"{PODS}/p1")
    await store.until({"p0", "p2"})
    cluster.store.forget()
    await client.post(PODS, pod("late"))
    await store.until({"p0", "p2", "late"})
    running.cancel()


async def test_our_lease_has_one_holder(client: KubernetesClient, cluster: InMemoryCluster) -> None:
    now = cluster.now()
    first = await lease.renew(client, "vgpu-system", "leader", "one", 15, now)
    assert first is not None
    assert first.holder == "one"
    assert await lease.renew(client, "vgpu-system", "leader", "two", 15, now) is None
    await lease.release(client, "vgpu-system", "leader", "one", now)
    second = await lease.renew(client, "vgpu-system", "leader", "two", 15, now)
    assert second is not None
    assert (second.holder, second.transitions) == ("two", 1)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (PatchKind.MERGE, {"metadata": {"labels": {"a": "1"}}}),
        (PatchKind.STRATEGIC, {"metadata": {"labels": {"a": "1"}}}),
        (PatchKind.APPLY, {"metadata": {"labels": {"a": "1"}}}),
        (PatchKind.JSON, [{"op": "add", "path": "/metadata/labels", "value": {"a": "1"}}]),
    ],
)
async def test_every_kind_of_patch_of_our_client(client: KubernetesClient, kind: PatchKind, body: Any) -> None:
    await client.post(PODS, pod("a"))
    assert json.loads(await client.patch(f"{PODS}/a", body, kind=kind))["metadata"]["labels"] == {"a": "1"}


async def test_a_patch_with_an_old_version_conflicts(client: KubernetesClient) -> None:
    await client.post(PODS, pod("a"))
    with pytest.raises(KubernetesError) as conflict:
        await client.patch(f"{PODS}/a", {"metadata": {"resourceVersion": "1", "labels": {"a": "1"}}})
    assert (conflict.value.status, conflict.value.reason) == (409, "Conflict")
