"""A busy API server: the reflector continues its watch, and lists again only where the version is unknown."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import test_utils, web

from tests.vgpu.adapters.test_reflector import NameStore, connect
from vgpu.adapters.kubernetes.client import KubernetesClient
from vgpu.adapters.kubernetes.reflector import Reflector

PATH = "/api/v1/namespaces/default/configmaps"
SILENCE_S = 0.2
EXPIRED = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "too old resource version"}}
RESTORED = {
    "type": "ERROR",
    "object": {"kind": "Status", "code": 504, "message": "Too large resource version: 9, current: 3"},
}


def page(*names: str, token: str = "", version: str = "5") -> dict[str, Any]:
    metadata = {"resourceVersion": version, "continue": token}
    return {"metadata": metadata, "items": [{"metadata": {"name": name}} for name in names]}


class BusyServer:
    """Answers lists and watches from two scripts; after a script's end a list is empty and a watch stays open."""

    def __init__(self) -> None:
        self.lists: list[Any] = []
        self.watches: list[Any] = []
        self.requests: list[str] = []

    async def answer(self, request: web.Request) -> web.StreamResponse:
        is_watch = "watch" in request.query
        version, token = request.query.get("resourceVersion", ""), request.query.get("continue", "")
        self.requests.append(f"watch {version}" if is_watch else f"list {token}".strip())
        script = self.watches if is_watch else self.lists
        step = script.pop(0) if script else None
        if isinstance(step, int):
            return web.json_response({"message": "busy"}, status=step, headers={"Retry-After": "7"})
        if step == "break" and request.transport is not None:
            request.transport.abort()
        if not is_watch:
            return web.json_response(step or page())
        response = web.StreamResponse()
        await response.prepare(request)
        if isinstance(step, dict):
            await response.write(json.dumps(step).encode() + b"\n")
        else:
            await asyncio.sleep(60)
        return response


class World:
    """A reflector of a busy server, whose sleeps are recorded."""

    def __init__(self, server: BusyServer, client: KubernetesClient) -> None:
        self.server = server
        self.store = NameStore()
        self.slept: list[float] = []
        self.client = client
        self.reflector = self.made()

    def made(self, *, is_never_quiet: bool = False) -> Reflector:
        """Return a new reflector, which runs once the test has written a script."""
        return Reflector(
            self.client, PATH, self.store,
            jitter=lambda: 0.5, absent_s=30.0, silence_s=SILENCE_S, is_never_quiet=is_never_quiet, sleep=self.sleep,
        )  # fmt: skip

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(0.001)

    async def until_watching(self, count: int) -> list[str]:
        """Wait until so many watches were asked for, and return all requests."""
        async with asyncio.timeout(5):
            while sum(request.startswith("watch") for request in self.server.requests) < count:
                await asyncio.sleep(0.005)
        return self.server.requests


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    busy = BusyServer()
    app = web.Application()
    app.router.add_get(PATH, busy.answer)
    async with (
        test_utils.TestServer(app) as server,
        await connect(f"http://{server.host}:{server.port}", tmp_path) as client,
    ):
        made = World(busy, client)
        running = asyncio.create_task(_started(made))
        yield made
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def _started(world: World) -> None:
    """Run the reflector once the test has written the scripts."""
    while not (world.server.lists or world.server.watches):
        await asyncio.sleep(0.001)
    await world.reflector.run()


@pytest.mark.parametrize("fault", [429, 503, 500, "break"])
async def test_a_watch_that_fails_is_continued_from_its_version(world: World, fault: Any) -> None:
    world.server.watches = [
        fault,
        fault,
        {"type": "ADDED", "object": {"metadata": {"name": "a", "resourceVersion": "6"}}},
    ]
    requests = await world.until_watching(4)
    assert requests == ["list", "watch 5", "watch 5", "watch 5", "watch 6"]
    assert (world.store.lists, world.store.names) == (1, {"a"})


async def test_the_back_off_grows_and_keeps_to_retry_after(world: World) -> None:
    world.server.watches = [429] * 8
    await world.until_watching(9)
    assert world.slept == sorted(world.slept)
    assert all(7 < pause <= 7 + 5 for pause in world.slept)
    assert world.slept[-1] == 7 + 5 * 0.75


@pytest.mark.parametrize("event", [EXPIRED, RESTORED])
async def test_an_unknown_version_leads_to_a_list(world: World, event: Any) -> None:
    world.server.watches = [event]
    assert await world.until_watching(2) == ["list", "watch 5", "list", "watch 5"]


async def test_a_watch_refused_with_410_leads_to_a_list(world: World) -> None:
    world.server.watches = [410]
    assert await world.until_watching(2) == ["list", "watch 5", "list", "watch 5"]


async def test_a_kind_that_the_server_does_not_know_has_no_objects_until_it_does(world: World) -> None:
    world.server.lists = [404, 404, page("a")]
    async with asyncio.timeout(5):
        await world.reflector.synced.wait()
    assert world.store.names == set()
    assert await world.until_watching(1) == ["list", "list", "list", "watch 5"]
    assert (world.slept[:2], world.store.names) == ([30.0, 30.0], {"a"})


async def test_a_list_that_is_interrupted_goes_on_with_its_page(world: World) -> None:
    world.server.lists = [page("a", token="t1"), page("b", token="t2"), 503, 429, page("c")]
    assert (await world.until_watching(1))[:5] == ["list", "list t1", "list t2", "list t2", "list t2"]
    assert (world.store.names, world.store.lists) == ({"a", "b", "c"}, 1)


async def test_a_list_whose_pages_have_expired_begins_again(world: World) -> None:
    world.server.lists = [page("gone", token="t1"), 410, page("a")]
    assert (await world.until_watching(1))[:3] == ["list", "list t1", "list"]
    assert world.store.names == {"a"}


async def test_a_server_that_answers_a_watch_is_heard_also_where_nothing_changes(world: World) -> None:
    """Without etcd's progress notifications the API server sends no bookmark of a kind that never changes."""
    world.server.lists = [page()]
    await world.until_watching(2)
    listed_at = world.reflector.heard_at
    await world.until_watching(3)
    assert listed_at is not None
    assert world.reflector.heard_at is not None
    assert world.reflector.heard_at >= listed_at + SILENCE_S
    assert world.store.lists == 1


async def test_an_answer_alone_is_no_sign_of_life_of_a_kind_that_always_changes(world: World) -> None:
    """While etcd does not answer, the API server takes watches and sends nothing."""
    world.reflector = world.made(is_never_quiet=True)
    world.server.lists = [page()]
    await world.until_watching(2)
    heard_at = world.reflector.heard_at
    await world.until_watching(3)
    assert world.reflector.heard_at == heard_at
    world.server.watches = [{"type": "ADDED", "object": {"metadata": {"name": "a", "resourceVersion": "6"}}}]
    await world.until_watching(5)
    assert (world.reflector.heard_at or 0) > (heard_at or 0)


async def test_a_server_that_refuses_watches_is_not_heard(world: World) -> None:
    world.server.lists, world.server.watches = [page()], [503] * 20
    await world.until_watching(2)
    heard_at = world.reflector.heard_at
    await world.until_watching(10)
    assert world.reflector.heard_at == heard_at
