"""The verbs over real sockets: many and slow clients, large bodies, clients that go away, calls that come too early."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from extender import app
from tests.extender.conftest import World
from vgpu.simulator.api import http_server

CLIENTS = 64


class NotSynced:
    is_synced = False


@asynccontextmanager
async def port(world: World, watches: Any = None) -> AsyncIterator[int]:
    """Serve the verbs on a port."""
    async with http_server.serve(app.app(world.verbs, watches or world.watches, world.clock)) as address:
        yield address.port


def head(length: int, path: str = "/filter") -> bytes:
    return f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n".encode()


async def post(number: int, body: bytes, path: str = "/filter") -> tuple[int, Any]:
    """Return the status and the decoded body of a call on a connection of its own."""
    reader, writer = await asyncio.open_connection("127.0.0.1", number)
    writer.write(head(len(body), path) + body)
    try:
        return await reply(reader)
    finally:
        writer.close()


async def reply(reader: asyncio.StreamReader) -> tuple[int, Any]:
    async with asyncio.timeout(30):
        lines = (await reader.readuntil(b"\r\n\r\n")).lower().splitlines()
        length = next(int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length"))
        return int(lines[0].split()[1]), json.loads(await reader.readexactly(length))


def call(pod: dict[str, Any], *nodes: str) -> bytes:
    return json.dumps({"pod": pod, "nodes": None, "nodenames": list(nodes)}).encode()  # Go reads keys in any case


async def test_64_clients_are_answered_beside_slow_ones_and_ones_that_go_away(world: World) -> None:
    pod = await world.create_pod(gpu_mem=1024)
    body = call(pod, "n1", "no-such-node")
    async with port(world) as number:
        slow = [await asyncio.open_connection("127.0.0.1", number) for _ in range(CLIENTS)]
        for n, (_, writer) in enumerate(slow):
            writer.write(head(len(body)) + body[: n * len(body) // CLIENTS])
        answers = await asyncio.gather(*(post(number, body) for _ in range(CLIENTS)))
        for n, (_, writer) in enumerate(slow[: CLIENTS // 2]):
            writer.write(body[n * len(body) // CLIENTS :])
        for _, writer in slow[CLIENTS // 2 :]:
            writer.close()  # in the middle of the body
        answers += await asyncio.gather(*(reply(reader) for reader, _ in slow[: CLIENTS // 2]))
        for _, writer in slow:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
    for status, answer in answers:
        assert (status, answer["NodeNames"], answer["Error"]) == (200, ["n1"], "")
        assert list(answer["FailedAndUnresolvableNodes"]) == ["no-such-node"]


async def test_a_pod_of_a_megabyte_is_answered(world: World) -> None:
    pod = await world.create_pod(gpu_mem=1024)
    pod["metadata"]["managedFields"] = [{"fieldsV1": {"f:a": "x" * (1 << 20)}}]
    async with port(world) as number:
        assert (await post(number, call(pod, "n1")))[1]["NodeNames"] == ["n1"]
        assert (await post(number, call(pod, "n1"), "/prioritize"))[1] == [{"Host": "n1", "Score": 10}]


@pytest.mark.slow
async def test_bodies_of_100_mib_are_refused_while_others_are_answered(world: World) -> None:
    pod = await world.create_pod(gpu_mem=1024)
    async with port(world) as number:
        large = [asyncio.create_task(post(number, b" " * (100 << 20))) for _ in range(3)]
        answers = await asyncio.gather(*(post(number, call(pod, "n1")) for _ in range(CLIENTS)))
        assert all(answer["NodeNames"] == ["n1"] for _, answer in answers)
        refused = await asyncio.gather(*large)
    assert {status for status, _ in refused} == {413}
    assert f"longer than {app.MAX_BODY} bytes" in refused[0][1]["Error"]


async def test_no_verb_answers_before_the_lists_are_complete(world: World) -> None:
    pod = await world.create_pod()
    async with port(world, NotSynced()) as number:
        for path in ("/filter", "/prioritize", "/preempt", "/bind"):
            status, answer = await post(number, call(pod, "n1"), path)
            assert (status, answer["Error"]) == (503, app.NOT_READY)


async def test_the_index_is_written_before_a_verb_answers(world: World) -> None:
    await world.until(lambda: world.seen.is_synced)
    assert (len(world.cluster.rows.index), world.cluster.rows.waiting) == (3, 0)
