"""Verbs while the history's database fails: PostgreSQL killed, and SQLite's file system full, during a churn of pods.

A real extender with its drain process, called over HTTP as kube-scheduler calls it, over the simulator's API server and
nodes. In each run the database is healthy and fails in turn, so that what else the machine does meets both. Calls while
the drain catches up are in neither. Afterwards every pod must be in the history once, in the order of the Bindings, and
nothing may wait any more.

    python -m benchmarks.history.faults --rounds 8 --period-s 15      (root: it mounts a small file system)
"""

import argparse
import asyncio
import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

import aiohttp

from benchmarks.calls import quantile_ratio, verb_caller
from benchmarks.calls.quantile_ratio import CallRound
from benchmarks.calls.verb_caller import VerbCaller
from benchmarks.record import recorder, result
from benchmarks.record.recorder import ResultRecorder
from cluster import progress
from cluster.additions import postgres
from cluster.additions.postgres import Postgres
from extender.history import drain_state, folder
from extender.history.recording.events import Decision, EventKind
from extender.history.reporting.prices import Prices
from extender.history.reporting.reports import HistoryFilters
from extender.history.reporting.sql_reports import SqlReports
from extender.history.storage import database
from vgpu.domain import names
from vgpu.simulator import installation, nodes, ports
from vgpu.simulator.api import resources, server
from vgpu.simulator.api.cluster import InMemoryCluster
from vgpu.simulator.api.resources import Target
from vgpu.simulator.kubelet import Kubelet

NODES, CARDS = 20, 4
LIFETIME_S = 2.0
WARM_UP_S = 5.0
MAY_WAIT = 5  # lines of the spill: the drain looks for new ones from time to time
GOAL = 1.1
VERBS = ("filter", "bind")
Step = Callable[[], Coroutine[Any, Any, None]]


class DatabasePhase(StrEnum):
    """What the database does while a call is made."""

    HEALTHY = "healthy"
    FAILING = "failing"
    CHANGING = "changing"  # between them: it begins to fail, or the drain catches up


@dataclass(slots=True)
class Calls:
    """The milliseconds of the calls of a run, by verb, round and phase, and the number of pods."""

    took: dict[tuple[str, int, DatabasePhase], list[float]] = field(default_factory=lambda: defaultdict(list))
    phase: DatabasePhase = DatabasePhase.CHANGING
    round: int = 0
    pods: int = 0

    def rounds(self, verb: str) -> list[CallRound]:
        """Return the rounds of a verb."""
        both = (
            [self.took[verb, n, phase] for phase in (DatabasePhase.HEALTHY, DatabasePhase.FAILING)]
            for n in range(self.round)
        )
        return [CallRound(healthy, failing) for healthy, failing in both]


@dataclass(frozen=True, slots=True)
class Faults:
    """How a database fails, and comes back."""

    fail: Step
    heal: Step


async def churn(cluster: InMemoryCluster, url: str, rate: float, calls: Calls, last: asyncio.Task[None]) -> None:
    """Create, filter, bind and delete pods at a steady rate until `last` ends, and note the time of each call."""
    listed = [f"node-{n + 1}" for n in range(NODES)]
    async with verb_caller.calling(url) as caller:
        begun, ends = time.monotonic(), []
        while not last.done():
            number = calls.pods
            calls.pods += 1
            await asyncio.sleep(max(0.0, begun + number / rate - time.monotonic()))
            pod = await cluster.create(Target(resources.PODS, "default"), manifest(number))
            asked = {"Pod": pod, "NodeNames": listed}
            fitting = (await call(caller, "filter", asked, calls))["NodeNames"]
            meta = pod["metadata"]
            bound = {"PodName": meta["name"], "PodNamespace": "default", "PodUID": meta["uid"], "Node": fitting[0]}
            error = (await call(caller, "bind", bound, calls))["Error"]
            assert not error, error
            ends.append(asyncio.create_task(end(cluster, meta["name"])))
        await asyncio.gather(*ends)
    await last


async def call(caller: VerbCaller, verb: str, body: dict[str, Any], calls: Calls) -> dict[str, Any]:
    """Call a verb, and note the milliseconds."""
    phase = calls.phase
    milliseconds, reply = await caller.post(verb, json.dumps(body).encode())
    calls.took[verb, calls.round, phase if phase is calls.phase else DatabasePhase.CHANGING].append(milliseconds)
    found: dict[str, Any] = json.loads(reply)
    return found


async def end(cluster: InMemoryCluster, name: str) -> None:
    """Delete a pod after its lifetime."""
    await asyncio.sleep(LIFETIME_S)
    await cluster.delete(Target(resources.PODS, "default", name), {"gracePeriodSeconds": 0})


def manifest(number: int) -> dict[str, Any]:
    """Return a pod with a share, as the webhook admits it."""
    limits = {names.GPU_MEM: "1024", names.GPU_CORES: "5", names.SLICE: "4"}
    container = {"name": "main", "image": "none", "resources": {"limits": limits, "requests": limits}}
    spec = {"containers": [container], "schedulerName": names.SCHEDULER}
    return {"metadata": {"name": f"p{number}", "namespace": "default"}, "spec": spec}


@contextlib.asynccontextmanager
async def extender(home: Path, flags: list[str]) -> AsyncIterator[tuple[InMemoryCluster, str]]:
    """Run an API server, nodes, and an extender that is ready to bind; yield the server and the extender's URL."""
    cluster = server.make_cluster(lambda: datetime.now(UTC), lambda: str(uuid.uuid4()))
    async with server.serving(cluster) as api:
        await installation.install(cluster, "https://127.0.0.1:1")
        for resource in (resources.MUTATING, resources.VALIDATING):
            await cluster.delete(Target(resource, name=installation.WEBHOOK), {})
        kubelets = [Kubelet(cluster, node) for node in nodes.fleet(NODES, CARDS, [81920], 256)]
        for kubelet in kubelets:
            await kubelet.register()
        running = [asyncio.create_task(kubelet.run()) for kubelet in kubelets]
        installation.write_kubeconfig(home / "kubeconfig", api)
        port = ports.free()
        command = [
            sys.executable,
            "-m",
            "extender",
            f"--kubeconfig={home / 'kubeconfig'}",
            f"--listen=127.0.0.1:{port}",
        ]
        with (home / "extender.log").open("ab") as log:
            process = await asyncio.create_subprocess_exec(*command, *flags, stderr=log)
        url = f"http://127.0.0.1:{port}"
        await until_it_binds(url)
        yield cluster, url
        process.terminate()
        await process.wait()
        for task in running:
            task.cancel()


async def until_it_binds(url: str) -> None:
    """Wait until the extender is ready and leads: a new leader waits out the Bindings of the one before."""
    nobody = dict.fromkeys(("PodName", "PodNamespace", "PodUID", "Node"), "none")
    async with aiohttp.ClientSession(url) as session:
        while True:
            with contextlib.suppress(aiohttp.ClientError):
                async with session.post("/bind", json=nobody) as response:
                    if "gone" in (await response.json())["Error"]:
                        return
            await asyncio.sleep(0.2)


async def run(home: Path, flags: list[str], asked: argparse.Namespace, faults: Faults) -> Calls:
    """Run the churn with these flags of the extender, and rounds of the faults beside it; return when nothing waits."""
    home.mkdir(exist_ok=True)  # noqa: ASYNC240 - before anything is timed
    calls = Calls()
    async with extender(home, flags) as (cluster, url):
        alternating = asyncio.create_task(alternate(home, asked, calls, faults))
        await churn(cluster, url, asked.rate, calls, alternating)
        await drained(home)
    return calls


async def alternate(home: Path, asked: argparse.Namespace, calls: Calls, faults: Faults) -> None:
    """Let the database be healthy and fail in turn."""
    await asyncio.sleep(WARM_UP_S)
    for _ in range(asked.rounds):
        calls.phase = DatabasePhase.HEALTHY
        await asyncio.sleep(asked.period_s)
        calls.phase = DatabasePhase.CHANGING
        await faults.fail()
        calls.phase = DatabasePhase.FAILING
        await asyncio.sleep(asked.period_s)
        state = drain_state.read(folder.state_file(home))
        progress.say(f"{home.name}: {waiting(home)} lines wait after {asked.period_s:.0f} s: {state.error}")
        calls.phase = DatabasePhase.CHANGING
        await faults.heal()
        await drained(home)
        calls.round += 1


async def drained(home: Path) -> None:
    """Wait until the drain has stored nearly every line of the spill: a churn goes on writing."""
    begun = time.monotonic()
    while waiting(home) > MAY_WAIT:  # noqa: ASYNC110 - another process drains
        await asyncio.sleep(0.2)
    progress.say(f"{home.name}: at most {MAY_WAIT} lines wait after {time.monotonic() - begun:.1f} s")


def waiting(home: Path) -> int:
    """Return how many lines of the spill wait for the database."""
    last = max(folder.spill(home).glob("*.log"))
    next_line = int(last.stem) + last.read_bytes().count(b"\n")
    return next_line - drain_state.read(folder.state_file(home)).next_line


def check(url: str, pods: int) -> None:
    """Compare the history with the churn: each pod once, and the decisions in order."""
    engine = database.engine(url)
    found, cursor = [], ""
    while True:
        filters = HistoryFilters(kinds=frozenset({EventKind.DECISION}))
        page = SqlReports(engine, Prices(), lambda: 0).history(filters, cursor, 1000)
        found += [(entry.id, entry.event) for entry in page.entries]
        cursor = page.cursor
        if not cursor:
            break
    engine.dispose()
    decided = [event.pod.name for _, event in sorted(found, key=lambda entry: entry[0]) if isinstance(event, Decision)]
    assert decided == [f"p{n}" for n in range(pods)], f"{len(decided)} of {pods} pods, or not in order"


async def disk_full(asked: argparse.Namespace, work: Path) -> Calls:
    """Fill the file system of SQLite's database, and empty it, in turn."""
    small = work / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128m", "tmpfs", small], check=True)  # noqa: ASYNC221
    url = database.sqlite_url(small / "history.db")
    home, filler = work / "full", small / "filler"

    async def fill() -> None:
        with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(1 << 20))
        with contextlib.suppress(OSError), filler.open("ab", buffering=0) as file:
            while True:
                file.write(bytes(4096))

    async def empty() -> None:
        filler.unlink()

    try:
        calls = await run(home, [f"--history-dir={home}", f"--history-url={url}"], asked, Faults(fill, empty))
        check(url, calls.pods)
    finally:
        subprocess.run(["umount", small], check=True)  # noqa: ASYNC221
    return calls


async def postgresql_killed(asked: argparse.Namespace, work: Path) -> Calls:
    """Keep the history in PostgreSQL, kill it, and start it again, in turn."""
    home, database_server = work / "killed", Postgres(work / "killed.server")
    database_server.start()
    url = database_server.create("history")

    async def kill() -> None:
        await asyncio.to_thread(database_server.stop, signal.SIGQUIT)

    async def start() -> None:
        await asyncio.to_thread(database_server.start)

    try:
        calls = await run(home, [f"--history-dir={home}", f"--history-url={url}"], asked, Faults(kill, start))
        check(url, calls.pods)
    finally:
        database_server.stop()
    return calls


CASES = {"sqlite-disk-full": disk_full, "postgresql-killed": postgresql_killed}


async def every(asked: argparse.Namespace, work: Path) -> dict[str, Calls]:
    """Run every case, or the one asked for."""
    return {case: await run_case(asked, work) for case, run_case in CASES.items() if asked.only in case}


def rows(found: dict[str, Calls], asked: argparse.Namespace) -> list[result.ResultRow]:
    """Return the rows of a result: for each case and verb p50 and p99, failing and healthy, and the ratio of p99."""
    load = {"rate": asked.rate, "rounds": asked.rounds, "period_s": asked.period_s}
    return [row for case, calls in found.items() for verb in VERBS for row in _rows(case, verb, calls, load)]


def _rows(case: str, verb: str, calls: Calls, load: dict[str, Any]) -> Iterator[result.ResultRow]:
    rounds = calls.rounds(verb)
    healthy, failing = (
        [ms for calls_of_round in rounds for ms in times(calls_of_round)] for times in (_healthy, _failing)
    )
    for name, of in (("p50", statistics.median), ("p99", quantile_ratio.p99)):
        details = load | {"calls": len(failing)}
        row_id = f"history-faults.{case}.{verb}.{name}"
        yield result.ResultRow(id=row_id, value=of(failing), native=of(healthy), unit="ms", details=details)
    ratio = quantile_ratio.of(rounds)
    details = load | {"low": round(ratio.low, 3), "high": round(ratio.high, 3), "verdict": ratio.verdict(GOAL)}
    yield result.ResultRow(id=f"history-faults.{case}.{verb}.ratio", value=ratio.value, unit="ratio", details=details)


def _healthy(calls: CallRound) -> Sequence[float]:
    return calls.healthy


def _failing(calls: CallRound) -> Sequence[float]:
    return calls.failing


def line(row: result.ResultRow) -> str:
    """Return a row as a line of a Markdown table."""
    healthy = "" if row.native is None else f"{row.native:.2f}"
    interval = (
        f"{row.details['low']} to {row.details['high']}: {row.details['verdict']}" if "low" in row.details else ""
    )
    return f"| {row.id} | {healthy} | {row.value:.2f} {row.unit} | {interval} |"


def main() -> None:
    """Run every fault, print one table, and record the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=8, help="how often each database fails")
    parser.add_argument(
        "--period-s", type=float, default=15.0, help="seconds that it fails, and is healthy, in a round"
    )
    parser.add_argument("--rate", type=float, default=20.0, help="pods per second")
    parser.add_argument("--only", default="", help="only cases whose name contains this text")
    parser.add_argument("--json", type=Path, help=recorder.JSON_HELP)
    asked = parser.parse_args()
    if why := postgres.missing() or ("" if os.geteuid() == 0 else "run it as root"):
        sys.exit(why)
    record = ResultRecorder(asked.json, "history_faults", recorder.HISTORY_SOURCES)
    with tempfile.TemporaryDirectory() as work:
        Path(work).chmod(0o755)
        record.add(*rows(asyncio.run(every(asked, Path(work))), asked))
    print("\n".join(map(line, record.result.rows)), f"\n\n{record}")


if __name__ == "__main__":
    main()
