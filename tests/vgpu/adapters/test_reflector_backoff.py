"""A busy API server: the reflector continues its watch, and lists again only where the version is unknown."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import test_utils, web

from tests.vgpu.adapters.test_reflector import NameStore, connect
from vgpu.adapters.kubernetes.reflector import Reflector

PATH = "/api/v1/namespaces/default/configmaps"
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

    def __init__(self, server: BusyServer) -> None:
        self.server = server
        self.store = NameStore()
        self.slept: list[float] = []
        self.synced = asyncio.Event()

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
    made = World(BusyServer())
    app = web.Application()
    app.router.add_get(PATH, made.server.answer)
    async with (
        test_utils.TestServer(app) as server,
        await connect(f"http://{server.host}:{server.port}", tmp_path) as client,
    ):
        reflector = Reflector(client, PATH, made.store, jitter=lambda: 0.5, absent_s=30.0, sleep=made.sleep)
        made.synced = reflector.synced
        running = asyncio.create_task(_started(made, reflector))
        yield made
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def _started(world: World, reflector: Reflector) -> None:
    """Run the reflector once the test has written the scripts."""
    while not (world.server.lists or world.server.watches):
        await asyncio.sleep(0.001)
    await reflector.run()


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
        await world.synced.wait()
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
