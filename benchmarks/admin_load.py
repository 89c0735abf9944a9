"""Filter beside other load: p99 of `/filter` without load and beside clients that send all that they may, in turn.

They ask the admin REST for all it has, or send it bodies of 100 MiB, with a length (`bodies`) or without (`chunks`). Or
they are 100 open pages of the dashboard (`pages`), while a pod comes or goes every half second, also without them: each
page reads the event stream and, once a second, the summary. Or they send the verbs bodies of 100 MiB (`verb-bodies`),
pods of 1 MiB (`verb-pods`), or bodies that do not end (`verb-slow`, 64 clients). All the time, a process of idle
priority keeps each processor busy: on some machines a program is slower while other processors work.

Each load runs against an extender of its own: an in-memory API server with NODES GPU nodes and PODS bound pods. In a
round, the load's process and the admin's are stopped for PERIOD seconds and go on for as long, so that what else the
machine does meets both. A round in which other programs used more than 5 % of a processor is made again. The load
`none` compares nothing with nothing: its interval shows what a run can decide.

    python -m benchmarks.admin_load --nodes 200 --pods 10000 --streams 1000 --rounds 15 --period-s 3
    python -m benchmarks.admin_load --nodes 625 --pods 20000 --loads none,pages --json FILE
"""

import argparse
import asyncio
import contextlib
import itertools
import json
import os
import signal
import socket
import statistics
import sys
import time
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx

from benchmarks.calls import populated, quantile_ratio, verb_caller
from benchmarks.calls.quantile_ratio import CallRound
from benchmarks.calls.verb_caller import VerbCaller
from benchmarks.record import recorder
from benchmarks.record.recorder import ResultRecorder
from benchmarks.record.result import ResultRow, slug
from vgpu.domain import names
from vgpu.simulator.api.cluster import InMemoryCluster

CARDS = 8
BODY_MIB = 100
CLIENTS = 64
PAGES = 100
PAGES_S = 30.0  # in which they have read all cards
LOADS = ("none", "pages", "streams+lists", "bodies", "chunks", "questions", "verb-bodies", "verb-pods", "verb-slow")
WARM_UP_S = 3.0  # the first calls fill the cache of placements
CHANGE_S = 0.5  # in which a load stops, or goes on
OTHERS = 0.05  # of a processor
TRIES = 3  # for each round
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
GOAL = 1.5
PAGES_GOAL = 1.1
LIVE_S = 1.0  # between two updates of a page
OPENED_S = 0.05  # between two pages
CHURN_S = 0.5  # between two pods
MAP_FIELDS = "uuid,node,rack,index,model,memoryMiB,allocatedMiB,allocatedCores,healthy,reason,cordoned,usedCores"
SOURCES = ("extender", "vgpu/placement")

Load = Callable[[str], Coroutine[Any, Any, None]]


async def filters(caller: VerbCaller, nodes: int, seconds: float) -> list[float]:
    """Call filter about 50 times a second; return the times in ms."""
    body: dict[str, Any] = {
        "Pod": populated.pod("new", "default", 256),
        "NodeNames": [populated.node_name(n) for n in range(nodes)],
    }
    body["Pod"]["metadata"]["uid"] = "new-uid"
    data, took = json.dumps(body).encode(), []
    until = time.monotonic() + seconds
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
        "pages": open_pages,
        "bodies": lambda u: bodies(u, "simulate", BODY),
        "chunks": lambda u: bodies(u, "simulate", CHUNKS),
        "questions": questions,
        "verb-bodies": lambda u: bodies(u, "filter", BODY),
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


async def open_pages(url: str) -> None:
    """Do what the dashboard's first page does in 100 browsers."""
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(timeout=60, limits=limits) as http, asyncio.TaskGroup() as pages:
        for _ in range(PAGES):
            pages.create_task(open_page(http, url))
            await asyncio.sleep(OPENED_S)


async def open_page(http: httpx.AsyncClient, url: str) -> None:
    """Read the cards once and follow the stream; after a change read the summary, at most once a second."""
    async with http.stream("GET", f"{url}/events", timeout=None) as stream:
        cards = asyncio.create_task(read_cards(http, url))
        async for part in stream.aiter_raw():
            if b"event: " in part:
                await asyncio.sleep(LIVE_S)
                await asked(http, f"{url}/summary", {})
        await cards


async def read_cards(http: httpx.AsyncClient, url: str) -> None:
    """Read all cards, page by page."""
    query = {"sort": "node,index", "fields": MAP_FIELDS, "limit": 1000, "cursor": ""}
    while cursor := json.loads(await asked(http, f"{url}/gpus", query))["nextCursor"]:
        query["cursor"] = cursor


async def asked(http: httpx.AsyncClient, url: str, query: dict[str, Any]) -> bytes:
    """Return the body of an answer, for which the rate limit may have to be waited for."""
    while True:
        answer = await http.get(url, params=query)
        if answer.status_code != HTTPStatus.TOO_MANY_REQUESTS:
            return answer.content
        await asyncio.sleep(float(answer.headers["Retry-After"]))


async def lists(url: str) -> None:
    """Read all pods, sorted, page by page, again and again. The pages are not decoded, which would take a processor."""
    async with httpx.AsyncClient(timeout=60) as http:
        cursor = ""
        while True:
            answer = await http.get(f"{url}/pods", params={"limit": 1000, "sort": "-memoryMiB,node", "cursor": cursor})
            cursor = answer.content.rpartition(b'"nextCursor":"')[2].partition(b'"')[0].decode()
            if answer.status_code == HTTPStatus.TOO_MANY_REQUESTS:
                await asyncio.sleep(float(answer.headers["Retry-After"]))


PIECE = bytes(256 << 10)
PIECES = (BODY_MIB << 20) // len(PIECE)
BODY = (f"Content-Length: {BODY_MIB << 20}", PIECE, b"")
CHUNKS = ("Transfer-Encoding: chunked", b"%x\r\n%b\r\n" % (len(PIECE), PIECE), b"0\r\n\r\n")


async def bodies(url: str, path: str, sent: tuple[str, bytes, bytes]) -> None:
    """Send bodies of 100 MiB, each on a connection of its own, until they are answered or refused.

    All pieces are one piece of memory: a client that makes 100 MiB takes the machine's time in place of the extender.
    """
    (length, piece, last), (host, _, base) = sent, url.removeprefix("http://").partition("/")
    begin = f"POST {'/' + base if base else ''}/{path} HTTP/1.1"
    head = f"{begin}\r\nHost: localhost\r\nContent-Type: application/json\r\n{length}\r\n\r\n"
    name, port = host.split(":")
    while True:
        with contextlib.suppress(OSError), socket.create_connection((name, int(port))) as connection:
            connection.sendall(head.encode())
            for _ in range(PIECES):
                connection.sendall(piece)
            connection.sendall(last)
            connection.recv(1 << 16)


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
async def loading(urls: Sequence[tuple[str, str]], streams: int) -> AsyncIterator[list[int]]:
    """Run a process for each load and its URL, and yield their IDs; all of them must run until the end."""
    module = (sys.executable, "-m", "benchmarks.admin_load", "--streams", str(streams))
    processes = [await asyncio.create_subprocess_exec(*module, "--load", part, "--url", url) for part, url in urls]
    try:
        yield [process.pid for process in processes]
        ended = [part for (part, _), process in zip(urls, processes, strict=True) if process.returncode is not None]
        assert not ended, f"{ended} ended by themselves"
    finally:
        for process in processes:
            await end(process)


async def end(process: Process) -> None:
    """End a process, also one that is stopped."""
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    await process.wait()


def children(parent: int) -> list[int]:
    """Return the IDs of the processes that a process has started, and that those have."""
    found = []
    for status in Path("/proc").glob("[0-9]*/status"):
        with contextlib.suppress(OSError):
            if f"\nPPid:\t{parent}\n" in status.read_text():
                found.append(int(status.parent.name))
    return found + [pid for child in found for pid in children(child)]


def send(number: signal.Signals, pids: Iterable[int]) -> None:
    """Send a signal to processes."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


async def measure(kind: str, arguments: argparse.Namespace) -> list[CallRound]:
    """Measure filter without a load and beside it, in rounds."""
    cluster = populated.new()
    populated.fill(cluster, arguments.nodes, CARDS, arguments.pods)
    async with populated.extender(cluster) as running, verb_caller.calling(running.verbs) as caller:
        parts = [] if kind == "none" else kind.split("+")
        urls = [(part, running.verbs if part.startswith("verb-") else running.rest) for part in parts]
        async with loading(urls, arguments.streams) as loads, changing(cluster, arguments, "pages" in parts):
            await asyncio.sleep(settling_s(parts, arguments))
            await filters(caller, arguments.nodes, WARM_UP_S)
            try:
                return await quiet_rounds(caller, [*loads, *children(running.pid)], arguments)
            finally:
                send(signal.SIGCONT, children(running.pid))


def settling_s(parts: Sequence[str], arguments: argparse.Namespace) -> float:
    """Return how long loads take to begin."""
    if "pages" in parts:
        return PAGES_S
    return arguments.streams * 0.025 + 3 if "streams" in parts else 3


@contextlib.asynccontextmanager
async def changing(cluster: InMemoryCluster, arguments: argparse.Namespace, is_wanted: bool) -> AsyncIterator[None]:
    """Let a pod come or go all the time, where that is wanted: pages have updates then."""
    task = asyncio.create_task(churn(cluster, arguments)) if is_wanted else None
    try:
        yield
    finally:
        if task:
            task.cancel()


async def churn(cluster: InMemoryCluster, arguments: argparse.Namespace) -> None:
    """Let a pod come or go, in turn."""
    for number in itertools.count(arguments.pods):
        populated.put_pod(cluster, number, number % arguments.nodes, number // arguments.nodes % CARDS)
        await asyncio.sleep(CHURN_S)
        populated.remove_pod(cluster, number)
        await asyncio.sleep(CHURN_S)


async def quiet_rounds(caller: VerbCaller, pids: Sequence[int], arguments: argparse.Namespace) -> list[CallRound]:
    """Measure rounds until there are enough without other programs, or there were three times as many."""
    rounds: list[CallRound] = []
    for _ in range(TRIES * arguments.rounds):
        begun, before = time.monotonic(), others_s()
        found = await pair(caller, pids, arguments)
        if others_s() - before <= OTHERS * (time.monotonic() - begun):
            rounds.append(found)
        if len(rounds) == arguments.rounds:
            break
    return rounds


def others_s() -> float:
    """Return the seconds of all processors that other programs than this one and its children have used."""
    used = Path("/proc/stat").read_text().split()[1:4]  # user, nice, system
    own = 0
    for pid in (os.getpid(), *children(os.getpid())):
        with contextlib.suppress(OSError):  # a child that has just ended
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            own += int(fields[11]) + int(fields[12])
    return (sum(map(int, used)) - own) * TICK_S


async def pair(caller: VerbCaller, pids: Sequence[int], arguments: argparse.Namespace) -> CallRound:
    """Measure one round: without load, and beside it."""
    times = []
    for number in (signal.SIGSTOP, signal.SIGCONT):
        send(number, pids)
        await asyncio.sleep(CHANGE_S)
        times.append(await filters(caller, arguments.nodes, arguments.period_s))
    return CallRound(*times)


async def main(arguments: argparse.Namespace) -> None:
    """Print the table, and write the figures where a file is named."""
    record = ResultRecorder(arguments.json, "admin_load", SOURCES) if arguments.json else None
    print(f"filter of {arguments.nodes} nodes x {CARDS} cards, {arguments.pods} pods, {os.cpu_count()} cores; ms")
    print(
        f"{'load':<14}{'rounds':>7}{'calls':>6}{'p50 alone':>11}{'p50':>7}{'p99 alone':>11}{'p99':>7}{'max':>7}  ratio"
    )
    for kind in arguments.loads.split(","):
        async with loading([("busy", "")] * (os.cpu_count() or 1), 0):
            rounds = await measure(kind, arguments)
        print(line(kind, rounds), flush=True)
        if record and rounds:
            record.add(*result_rows(kind, rounds, arguments))


def goal_of(kind: str) -> float:
    """Return the largest ratio that a load may cause."""
    return PAGES_GOAL if kind in ("none", "pages") else GOAL


def result_rows(kind: str, rounds: Sequence[CallRound], arguments: argparse.Namespace) -> list[ResultRow]:
    """Return the figures of a load: p99 beside it and alone, and their ratio with its interval."""
    alone, beside = [ms for calls in rounds for ms in calls.healthy], [ms for calls in rounds for ms in calls.failing]
    ratio, goal = quantile_ratio.of(rounds), goal_of(kind)
    details = {"nodes": arguments.nodes, "pods": arguments.pods, "rounds": len(rounds), "calls": len(beside)}
    return [
        ResultRow(
            id=row_id(kind, name), value=of(beside), native=of(alone), unit="ms", worst=max(beside), details=details
        )
        for name, of in (("p50", statistics.median), ("p99", quantile_ratio.p99))
    ] + [
        ResultRow(
            id=row_id(kind, "ratio"),
            value=ratio.value,
            unit="ratio",
            goal=f"at most {goal}",
            fault="" if ratio.verdict(goal) == "held" else ratio.verdict(goal),
            details={**details, "low": ratio.low, "high": ratio.high},
        )
    ]


def row_id(kind: str, figure: str) -> str:
    """Return the id of a figure."""
    return slug("admin-load", kind, figure)


def line(kind: str, rounds: Sequence[CallRound]) -> str:
    """Return the table's line of a load."""
    if not rounds:
        return f"{kind:<14} other programs used the machine in every round"
    alone, beside = [ms for calls in rounds for ms in calls.healthy], [ms for calls in rounds for ms in calls.failing]
    ratio = quantile_ratio.of(rounds)
    p50 = f"{statistics.median(alone):>11.2f}{statistics.median(beside):>7.2f}"
    p99 = f"{quantile_ratio.p99(alone):>11.2f}{quantile_ratio.p99(beside):>7.2f}{max(beside):>7.1f}"
    interval = f"{ratio.value:.2f} ({ratio.low:.2f} to {ratio.high:.2f}): {ratio.verdict(goal_of(kind))}"
    return f"{kind:<14}{len(rounds):>7}{len(beside):>6}{p50}{p99}  {interval}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=200)
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--streams", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--period-s", type=float, default=3.0, help="seconds without load, and beside it, in a round")
    parser.add_argument("--loads", default=",".join(LOADS), help="with commas; + joins loads")
    parser.add_argument("--json", type=Path, help=recorder.JSON_HELP)
    parser.add_argument("--load", help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    given = parser.parse_args()
    asyncio.run(loader(given.load, given.url, given.streams) if given.load else main(given))
