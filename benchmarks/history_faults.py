"""Verbs while the history's database fails: PostgreSQL killed, and SQLite's file system full, during a churn of pods.

A real extender with its drain process, called over HTTP as kube-scheduler calls it, over the simulator's API server and
nodes. Runs without a history and with a healthy database are the baselines; each fault lasts from the tenth second on.
Afterwards every pod must be in the history once, in the order of the Bindings, and nothing may wait any more.

    python -m benchmarks.history_faults --pods 500 --fault-s 60      (root: it mounts a small file system)
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
from collections.abc import AsyncIterator, Callable, Coroutine
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp

from benchmarks import verb_caller
from benchmarks.record import recorder, result
from benchmarks.record.recorder import Recorder
from benchmarks.verb_caller import VerbCaller
from cluster import postgres, progress
from cluster.postgres import Postgres
from extender.history import database, drain_state, folder
from extender.history.events import Decision, Kind
from extender.history.prices import Prices
from extender.history.reports import HistoryFilters
from extender.history.sql_reports import SqlReports
from vgpu import names
from vgpu.simulator import installation, nodes, ports
from vgpu.simulator.api import resources, server
from vgpu.simulator.api.cluster import Cluster
from vgpu.simulator.api.resources import Target
from vgpu.simulator.kubelet import Kubelet

NODES, CARDS = 20, 4
LIFETIME_S = 2.0
FAULT_AT_S = 10.0
Verb = dict[str, list[float]]
Fault = Callable[[], Coroutine[Any, Any, None]]


async def churn(cluster: Cluster, url: str, pods: int, rate: float) -> Verb:
    """Create, filter, bind and delete pods at a steady rate; return the milliseconds of each call of each verb."""
    took: Verb = {"filter": [], "bind": []}
    listed = [f"node-{n + 1}" for n in range(NODES)]
    async with verb_caller.calling(url) as caller:
        begun, ends = time.monotonic(), []
        for number in range(pods):
            await asyncio.sleep(max(0.0, begun + number / rate - time.monotonic()))
            pod = await cluster.create(Target(resources.PODS, "default"), manifest(number))
            asked = {"Pod": pod, "NodeNames": listed}
            fitting = (await call(caller, "filter", asked, took))["NodeNames"]
            meta = pod["metadata"]
            bound = {"PodName": meta["name"], "PodNamespace": "default", "PodUID": meta["uid"], "Node": fitting[0]}
            error = (await call(caller, "bind", bound, took))["Error"]
            assert not error, error
            ends.append(asyncio.create_task(end(cluster, meta["name"])))
        await asyncio.gather(*ends)
    return took


async def call(caller: VerbCaller, verb: str, body: dict[str, Any], took: Verb) -> dict[str, Any]:
    """Call a verb, and note the milliseconds."""
    milliseconds, reply = await caller.post(verb, json.dumps(body).encode())
    took[verb].append(milliseconds)
    found: dict[str, Any] = json.loads(reply)
    return found


async def end(cluster: Cluster, name: str) -> None:
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
async def extender(home: Path, flags: list[str]) -> AsyncIterator[tuple[Cluster, str]]:
    """Run an API server, nodes, and an extender that is ready to bind; yield the server and the extender's URL."""
    cluster = server.make_cluster(lambda: datetime.now(UTC), lambda: str(uuid.uuid4()))
    async with server.serving(cluster) as api:
        await installation.install(cluster, "https://127.0.0.1:1")
        for resource in (resources.MUTATING, resources.VALIDATING):
            await cluster.delete(Target(resource, name=installation.WEBHOOK), {})
        kubelets = [Kubelet(cluster, node) for node in nodes.fleet(NODES, CARDS, 81920, 256)]
        for each in kubelets:
            await each.register()
        running = [asyncio.create_task(each.run()) for each in kubelets]
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


async def run(home: Path, flags: list[str], pods: int, rate: float, fault: Fault) -> Verb:
    """Run the churn with these flags of the extender, and the fault beside it; return when nothing waits."""
    home.mkdir(exist_ok=True)  # noqa: ASYNC240 - before anything is timed
    async with extender(home, flags) as (cluster, url):
        failing = asyncio.create_task(fault())
        took = await churn(cluster, url, pods, rate)
        await failing
        if flags:
            await drained(home)
    return took


async def drained(home: Path) -> None:
    """Wait until the drain has stored every line of the spill."""
    begun = time.monotonic()
    while waiting(home):  # noqa: ASYNC110 - another process drains
        await asyncio.sleep(0.2)
    progress.say(f"{home.name}: nothing waits {time.monotonic() - begun:.1f} s after the churn")


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
        filters = HistoryFilters(kinds=frozenset({Kind.DECISION}))
        page = SqlReports(engine, Prices(), lambda: 0).history(filters, cursor, 1000)
        found += [(each.id, each.event) for each in page.entries]
        cursor = page.cursor
        if not cursor:
            break
    engine.dispose()
    decided = [event.pod.name for _, event in sorted(found, key=lambda each: each[0]) if isinstance(event, Decision)]
    assert decided == [f"p{n}" for n in range(pods)], f"{len(decided)} of {pods} pods, or not in order"


async def faults(asked: argparse.Namespace, work: Path) -> dict[str, Verb]:
    """Run every case."""

    async def nothing() -> None:
        pass

    found = {"no-history": await run(work / "none", [], asked.pods, asked.rate, nothing)}
    home = work / "sqlite"
    found["sqlite"] = await run(home, [f"--history-dir={home}"], asked.pods, asked.rate, nothing)
    check(database.sqlite_url(folder.sqlite_file(home)), asked.pods)
    found["sqlite-disk-full"] = await disk_full(asked, work)
    found["postgresql"] = await with_postgresql(asked, work / "postgresql", is_killed=False)
    found["postgresql-killed"] = await with_postgresql(asked, work / "killed", is_killed=True)
    return found


async def disk_full(asked: argparse.Namespace, work: Path) -> Verb:
    """Fill the file system of SQLite's database for a while."""
    small = work / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", small], check=True)  # noqa: ASYNC221
    url = database.sqlite_url(small / "history.db")
    home = work / "full"

    async def fault() -> None:
        await asyncio.sleep(FAULT_AT_S)
        filler = small / "filler"
        with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
        await observe(home, asked.fault_s)
        filler.unlink()

    try:
        flags = [f"--history-dir={home}", f"--history-url={url}"]
        took = await run(home, flags, asked.pods, asked.rate, fault)
        check(url, asked.pods)
    finally:
        subprocess.run(["umount", small], check=True)  # noqa: ASYNC221
    return took


async def with_postgresql(asked: argparse.Namespace, home: Path, *, is_killed: bool) -> Verb:
    """Keep the history in PostgreSQL; kill it for a while, if that is asked for."""
    database_server = Postgres(home.with_suffix(".server"))
    database_server.start()
    url = database_server.create("history")

    async def fault() -> None:
        if not is_killed:
            return
        await asyncio.sleep(FAULT_AT_S)
        database_server.stop(signal.SIGQUIT)
        await observe(home, asked.fault_s)
        await asyncio.to_thread(database_server.start)

    try:
        flags = [f"--history-dir={home}", f"--history-url={url}"]
        took = await run(home, flags, asked.pods, asked.rate, fault)
        check(url, asked.pods)
    finally:
        database_server.stop()
    return took


async def observe(home: Path, seconds: float) -> None:
    """Wait, and say at the end how much waits, and the error that the drain shows."""
    await asyncio.sleep(seconds)
    state = drain_state.read(folder.state_file(home))
    progress.say(f"{home.name}: {waiting(home)} lines wait after {seconds:.0f} s: {state.error}")


def rows(found: dict[str, Verb], asked: argparse.Namespace) -> list[result.Row]:
    """Return the rows of a result."""
    load = {"pods": asked.pods, "rate": asked.rate, "fault_s": asked.fault_s}
    return [
        result.Row(id=f"history-faults.{case}.{verb}.{name}", value=value, unit="ms", details=load)
        for case, verbs in found.items()
        for verb, took in verbs.items()
        for name, value in (("p50", statistics.median(took)), ("p99", statistics.quantiles(took, n=100)[98]))
    ]


def main() -> None:
    """Run the baseline and every fault, print one table, and record the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pods", type=int, default=500, help="number of pods in each run")
    parser.add_argument("--rate", type=float, default=6.0, help="pods per second")
    parser.add_argument("--fault-s", type=float, default=60.0, help="seconds that a fault lasts")
    parser.add_argument("--json", type=Path, help=recorder.JSON_HELP)
    asked = parser.parse_args()
    if why := postgres.missing() or ("" if os.geteuid() == 0 else "run it as root"):
        sys.exit(why)
    record = Recorder(asked.json, "history_faults", recorder.HISTORY_SOURCES)
    with tempfile.TemporaryDirectory() as work:
        Path(work).chmod(0o755)
        record.add(*rows(asyncio.run(faults(asked, Path(work))), asked))
    print("\n".join(f"| {row.id} | {row.value:.2f} {row.unit} |" for row in record.result.rows), f"\n\n{record}")


if __name__ == "__main__":
    main()
