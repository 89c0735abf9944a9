"""Filter beside other load: the p99 of `/filter` alone, and while other clients send all that they may.

They ask the admin REST for all it has. Or they send the verbs bodies of 100 MiB (`verb-bodies`), pods of 1 MiB
(`verb-pods`), or bodies that do not end (`verb-slow`, 64 clients). In every row, also in that without load, a process
of idle priority keeps each processor busy: on some machines a program is slower while other processors work.

Each load runs against an extender of its own: an in-memory API server with NODES GPU nodes and PODS bound pods.

    python -m benchmarks.admin_load --nodes 200 --pods 10000 --streams 1000 --seconds 20
"""

import argparse
import asyncio
import contextlib
import json
import os
import statistics
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from http import HTTPStatus
from typing import Any

import httpx

from benchmarks import populated, verb_caller
from vgpu import names

CARDS = 8
BODY_MIB = 100
CLIENTS = 64
LOADS = ("none", "streams", "lists", "bodies", "questions", "verb-bodies", "verb-pods", "verb-slow")
WARM_UP_S = 3.0  # the first calls fill the cache of placements

Load = Callable[[str], Coroutine[Any, Any, None]]


async def filters(url: str, nodes: int, seconds: float) -> list[float]:
    """Call filter about 50 times a second; return the times in ms."""
    body: dict[str, Any] = {
        "Pod": populated.pod("new", "default", 256),
        "NodeNames": [populated.node_name(n) for n in range(nodes)],
    }
    body["Pod"]["metadata"]["uid"] = "new-uid"
    data, took = json.dumps(body).encode(), []
    until = time.monotonic() + seconds
    async with verb_caller.calling(url) as caller:
        while time.monotonic() < until:
            milliseconds, reply = await caller.post("filter", data)
            took.append(milliseconds)
            assert len(json.loads(reply)["NodeNames"]) == nodes, reply[:300]
            await asyncio.sleep(0.02)
    return took


async def loader(kind: str, url: str, streams: int) -> None:
    """Ask the REST until cancelled; runs in a process of its own, which takes no time from the extender's."""
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    loads: dict[str, Load] = {
        "busy": spin,
        "streams": lambda u: idle_streams(u, streams),
        "lists": lists,
        "bodies": bodies,
        "questions": questions,
        "verb-bodies": lambda u: bodies(u, "filter"),
        "verb-pods": pods,
        "verb-slow": slow_clients,
    }
    await loads[kind](url)


async def idle_streams(url: str, count: int) -> None:
    """Open event streams, below the rate limit, and read nothing."""
    host, port = url.removeprefix("http://").partition("/")[0].split(":")
    for _ in range(count):
        _, writer = await asyncio.open_connection(host, int(port))
        KEPT.append(writer)
        writer.write(b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await asyncio.sleep(0.02)  # below the rate limit
    await asyncio.sleep(3600)


KEPT: list[asyncio.StreamWriter] = []


async def lists(url: str) -> None:
    """Read all pods, sorted, page by page, again and again. The pages are not decoded, which would take a processor."""
    async with httpx.AsyncClient(timeout=60) as http:
        cursor = ""
        while True:
            answer = await http.get(f"{url}/pods", params={"limit": 1000, "sort": "-memoryMiB,node", "cursor": cursor})
            cursor = answer.content.rpartition(b'"nextCursor":"')[2].partition(b'"')[0].decode()
            if answer.status_code == HTTPStatus.TOO_MANY_REQUESTS:
                await asyncio.sleep(float(answer.headers["Retry-After"]))


async def bodies(url: str, path: str = "simulate") -> None:
    """Send bodies of 100 MiB."""
    data = b"x" * (BODY_MIB << 20)
    while True:
        with contextlib.suppress(httpx.HTTPError):
            async with httpx.AsyncClient(timeout=60) as http:
                await http.post(f"{url}/{path}", content=data, headers={"Content-Type": "application/json"})


async def pods(url: str) -> None:
    """Ask about a pod of 1 MiB, again and again."""
    pod = populated.pod("large", "default", 256)
    pod["metadata"]["managedFields"] = [{"fieldsV1": {"f:a": "x" * (1 << 20)}}]
    data = json.dumps({"pod": pod, "nodenames": ["no-such-node"]}).encode()  # Go reads keys in any case
    async with httpx.AsyncClient(timeout=60) as http:
        while True:
            await http.post(f"{url}/filter", content=data)


async def slow_clients(url: str) -> None:
    """Open 64 connections, and send a byte of a body of 1 MiB on each every 10 ms."""
    host, port = url.removeprefix("http://").split(":")
    writers = [(await asyncio.open_connection(host, int(port)))[1] for _ in range(CLIENTS)]
    for writer in writers:
        writer.write(b"POST /filter HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1048576\r\n\r\n")
    while True:
        for writer in writers:
            writer.write(b" ")
        await asyncio.sleep(0.01)


async def questions(url: str) -> None:
    """Simulate 200 pods of four containers, again and again."""
    containers = [{"name": f"c{n}", "resources": {"limits": {names.GPU_MEM: str(30_000 + n)}}} for n in range(4)]
    body = {"pods": [{"pod": {"spec": {"containers": containers}}, "count": 200}]}
    async with httpx.AsyncClient(timeout=60) as http:
        while True:
            await http.post(f"{url}/simulate", json=body)


async def spin(_: str) -> None:
    """Keep a processor busy."""
    while True:
        pass


@contextlib.asynccontextmanager
async def loading(urls: Sequence[tuple[str, str]], streams: int) -> AsyncIterator[None]:
    """Run a process for each load and its URL; all of them must run until the end."""
    module = (sys.executable, "-m", "benchmarks.admin_load", "--streams", str(streams))
    processes = [await asyncio.create_subprocess_exec(*module, "--load", part, "--url", url) for part, url in urls]
    try:
        yield
        ended = [part for (part, _), process in zip(urls, processes, strict=True) if process.returncode is not None]
        assert not ended, f"{ended} ended by themselves"
    finally:
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()


async def measure(kind: str, arguments: argparse.Namespace) -> dict[str, float]:
    """Measure filter beside one load."""
    cluster = populated.new()
    populated.fill(cluster, arguments.nodes, CARDS, arguments.pods)
    async with populated.extender(cluster) as running:
        verbs, rest = running.verbs, running.rest
        parts = [] if kind == "none" else kind.split("+")
        urls = [(part, verbs if part.startswith("verb-") else rest) for part in parts]
        async with loading(urls, arguments.streams):
            if parts:
                await asyncio.sleep(arguments.streams * 0.025 + 3 if "streams" in parts else 3)
            await filters(verbs, arguments.nodes, WARM_UP_S)
            took = await filters(verbs, arguments.nodes, arguments.seconds)
    return {
        "calls": len(took),
        "p50": statistics.median(took),
        "p99": statistics.quantiles(took, n=100)[98],
        "max": max(took),
    }


async def main(arguments: argparse.Namespace) -> None:
    """Print the table."""
    print(f"filter of {arguments.nodes} nodes x {CARDS} cards, {arguments.pods} pods, {os.cpu_count()} cores; ms")
    print(f"{'load':<12}{'calls':>7}{'p50':>9}{'p99':>9}{'max':>9}{'p99 / alone':>13}")
    alone = 0.0
    for kind in arguments.loads.split(","):
        async with loading([("busy", "")] * (os.cpu_count() or 1), 0):
            found = await measure(kind, arguments)
        alone = alone or found["p99"]
        figures = "".join(f"{found[name]:>9.1f}" for name in ("p50", "p99", "max"))
        print(f"{kind:<12}{found['calls']:>7.0f}{figures}{found['p99'] / alone:>13.2f}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=200)
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--streams", type=int, default=1_000)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument(
        "--loads",
        default=",".join(LOADS),
        help="with commas, none first; + joins loads",
    )
    parser.add_argument("--load", help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    given = parser.parse_args()
    asyncio.run(loader(given.load, given.url, given.streams) if given.load else main(given))
