"""The reflector over an in-memory API server whose connections end, which restarts, and which forgets old versions."""

import asyncio
import itertools
import random
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests import kubeconfigs
from vgpu.adapters.kubernetes.client import KubernetesClient
from vgpu.adapters.kubernetes.reflector import Reflector
from vgpu.domain.errors import KubernetesError
from vgpu.simulator.api import server
from vgpu.simulator.api.cluster import InMemoryCluster

MAPS = "/api/v1/namespaces/default/configmaps"


class NameStore:
    """A handler that keeps names, and counts complete lists."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.lists = 0

    def replace(self, objects: list[Any], _: str) -> None:
        self.names = {obj["metadata"]["name"] for obj in objects}
        self.lists += 1

    def upsert(self, obj: Any) -> None:
        self.names.add(obj["metadata"]["name"])

    def delete(self, obj: Any) -> None:
        self.names.discard(obj["metadata"]["name"])

    async def until(self, wanted: set[str]) -> None:
        async with asyncio.timeout(10):
            while self.names != wanted:
                await asyncio.sleep(0.005)


def fresh() -> InMemoryCluster:
    numbers = itertools.count(1)
    return server.make_cluster(lambda: datetime.now(UTC), lambda: f"{next(numbers):08x}-uid")


async def connect(url: str, tmp_path: Path) -> KubernetesClient:
    return await KubernetesClient.connect(str(kubeconfigs.write(tmp_path, url)), user_agent="test")


async def add(client: KubernetesClient, *names: str) -> None:
    for name in names:
        await client.post(MAPS, {"metadata": {"name": name}})


async def brief(_: float) -> None:
    await asyncio.sleep(0.01)


@pytest.fixture
async def store() -> NameStore:
    return NameStore()


@pytest.fixture
async def running() -> AsyncIterator[list[asyncio.Task[None]]]:
    tasks: list[asyncio.Task[None]] = []
    yield tasks
    for task in tasks:
        task.cancel()
    assert all(isinstance(end, asyncio.CancelledError) for end in await asyncio.gather(*tasks, return_exceptions=True))


@pytest.mark.heavy
async def test_it_lists_in_pages_and_watches(tmp_path: Path, store: NameStore, running: list[Any]) -> None:
    async with server.serving(fresh()) as url, await connect(url, tmp_path) as client:
        await add(client, *(f"m{n}" for n in range(1100)))
        watch = Reflector(client, MAPS, store, jitter=random.random, sleep=brief)
        running.append(asyncio.create_task(watch.run()))
        await watch.synced.wait()
        assert len(store.names) == 1100
        await client.delete(f"{MAPS}/m0")
        await add(client, "new")
        await store.until({f"m{n}" for n in range(1, 1100)} | {"new"})
        assert store.lists == 1


async def test_it_lists_again_when_a_server_restarts_with_other_versions(
    tmp_path: Path, store: NameStore, running: list[Any]
) -> None:
    async with server.serving(fresh()) as url:
        client = await connect(url, tmp_path)
        await add(client, "old")
        running.append(asyncio.create_task(Reflector(client, MAPS, store, jitter=random.random, sleep=brief).run()))
        await store.until({"old"})
    await asyncio.sleep(0.1)
    assert store.names == {"old"}  # kept while the server does not answer
    async with server.serving(fresh(), int(url.rpartition(":")[2])):
        async with asyncio.timeout(5):
            while store.lists < 2:
                await asyncio.sleep(0.01)
        await add(client, "new")
        await store.until({"new"})
    running[0].cancel()
    await asyncio.wait(running)
    await client.close()


async def test_relist_returns_after_all_earlier_writes(tmp_path: Path, store: NameStore, running: list[Any]) -> None:
    async with server.serving(fresh()) as url, await connect(url, tmp_path) as client:
        watch = Reflector(client, MAPS, store, jitter=random.random, sleep=brief)
        running.append(asyncio.create_task(watch.run()))
        await watch.synced.wait()
        for n in range(20):
            await add(client, f"m{n}")
            await watch.relist()
            assert f"m{n}" in store.names
        await add(client, "after")
        await store.until({*(f"m{n}" for n in range(20)), "after"})


async def test_errors_carry_the_servers_message(tmp_path: Path) -> None:
    async with server.serving(fresh()) as url, await connect(url, tmp_path) as client:
        with pytest.raises(KubernetesError) as refused:
            await client.get(f"{MAPS}/none")
        assert (refused.value.status, refused.value.reason) == (404, "NotFound")
        await add(client, "twice")
        with pytest.raises(KubernetesError) as conflict:
            await add(client, "twice")
        assert conflict.value.is_definite
        assert msgspec.json.decode(await client.get(f"{MAPS}/twice"))["metadata"]["name"] == "twice"
        await asyncio.sleep(0)
    client = await connect("http://127.0.0.1:9", tmp_path)
    with pytest.raises(KubernetesError) as away:
        await client.get(MAPS)
    assert away.value.status == 0
    assert not away.value.is_definite
    await client.close()


class DeepClient(KubernetesClient):
    """An API server with two objects, one of which is 10,000 levels deep."""

    def __init__(self) -> None:
        """Open no connection."""

    DEEP = b'{"metadata": {"name": "deep", "managedFields": [' + b"[" * 10_000 + b"]" * 10_000 + b"]}}"
    PLAIN = b'{"metadata": {"name": "plain", "resourceVersion": "7"}}'

    async def page(self, *_: Any, **__: Any) -> bytes:
        return b'{"metadata": {"resourceVersion": "5"}, "items": [' + self.DEEP + b"," + self.PLAIN + b"]}"

    async def stream(self, *_: Any, **__: Any) -> AsyncIterator[list[bytes]]:
        for name in (b"deep", b"other"):
            yield [b'{"type": "MODIFIED", "object": ' + self.DEEP.replace(b"deep", name) + b"}"]
        yield [b'{"type": "DELETED", "object": ' + self.DEEP + b"}"]
        await asyncio.sleep(3600)


def raising(data: bytes) -> Any:
    obj = msgspec.json.decode(data)
    if obj["metadata"]["name"] == "deep":
        raise KeyError("uid")
    return obj


async def test_objects_of_any_depth_are_listed_and_watched(store: NameStore, running: list[Any]) -> None:
    watch = Reflector(DeepClient(), "/x", store, jitter=random.random, sleep=brief)
    running.append(asyncio.create_task(watch.run()))
    await watch.synced.wait()
    await store.until({"plain", "other"})
    assert (store.lists, watch.unreadable) == (1, 0)


class EndingClient(DeepClient):
    """Ends each watch after an object that is 10,000 levels deep; keeps from which versions watches began."""

    def __init__(self) -> None:
        super().__init__()
        self.versions: list[str] = []

    async def stream(self, _path: str, params: Any, *, silence_s: float) -> AsyncIterator[list[bytes]]:  # noqa: ARG002
        self.versions.append(params["resourceVersion"])
        deep = self.DEEP.replace(b'"name"', b'"resourceVersion": "9", "name"')
        yield [b'{"type": "MODIFIED", "object": ' + deep + b"}"]


async def test_a_watch_continues_after_an_object_of_any_depth(store: NameStore, running: list[Any]) -> None:
    client = EndingClient()
    running.append(asyncio.create_task(Reflector(client, "/x", store, jitter=random.random, sleep=brief).run()))
    async with asyncio.timeout(10):
        while len(client.versions) < 3:
            await asyncio.sleep(0.005)
    assert client.versions[:3] == ["5", "9", "9"]


async def test_an_object_that_cannot_be_read_is_counted_and_skipped(
    store: NameStore, running: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    client = DeepClient()
    watch = Reflector(client, "/x", store, jitter=random.random, sleep=brief, decode=raising)
    running.append(asyncio.create_task(watch.run()))
    await store.until({"plain", "other"})
    async with asyncio.timeout(10):
        while watch.unreadable < 3:
            await asyncio.sleep(0.005)
    assert store.lists == 1
    assert '"deep" cannot be read and is skipped' in caplog.text


async def test_pages_shrink_until_they_fit_into_memory(tmp_path: Path, store: NameStore, running: list[Any]) -> None:
    async with server.serving(fresh()) as url, await connect(url, tmp_path) as client:
        await add(client, *(f"m{n}" for n in range(40)))
        await client.post(MAPS, {"metadata": {"name": "long"}, "data": {"x": "x" * 5000}})
        assert await client.page(MAPS, {"limit": "500"}, 3000) is None
        watch = Reflector(client, MAPS, store, jitter=random.random, max_page=3000, sleep=brief)
        running.append(asyncio.create_task(watch.run()))
        await store.until({f"m{n}" for n in range(40)} | {"long"})
        running[0].cancel()
        await asyncio.wait(running)
