"""The admin's process over a real socket, with the extender's world in this process."""

import asyncio
import contextlib
import json
import os
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

import extender.admin.__main__ as admin_main
from extender import admin_service
from extender.admin import assembly, server
from extender.admin.exchange import cluster_client, process
from extender.admin.exchange.messages import Listener, StartMessage
from extender.admin.routes import leader_relay
from extender.lead import admin_address, leadership
from extender.lead.admin_address import AdminAddress
from extender.settings import ExtenderSettings
from extender.state.objects import WatchedLease
from tests.extender.admin.test_server import free_port
from tests.extender.conftest import World
from vgpu.adapters import process as adapters_process
from vgpu.adapters.child_process import Restarts
from vgpu.domain import names
from vgpu.pacing.back_off import BackOff

pytestmark = pytest.mark.heavy

STARTED_S = 30.0
IDENTITY = "this-replica"
STOPPED_S = cluster_client.FRAME_S + 5.0
CAUGHT_UP_S = 20.0


@pytest.fixture
def kubeconfig(world: World, tmp_path: Path) -> Path:  # noqa: ARG001 - the world has written it
    return tmp_path / "kubeconfig"


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "RESTARTS", Restarts(BackOff(first_s=0.05, longest_s=60.0), steady_s=60.0))


@asynccontextmanager
async def running(world: World, kubeconfig: Path, port: int, **more: Any) -> AsyncIterator[httpx.AsyncClient]:
    """The process on a port, with more settings, and a client of it."""
    settings = ExtenderSettings.model_construct(kubeconfig=kubeconfig, admin_listen=f"127.0.0.1:{port}", **more)
    object.__setattr__(world.seen, "settings", settings)
    made = admin_service.admin_process(world.seen, world.leader, world.history, lambda: "id", "test", IDENTITY)
    assert made is not None
    task = asyncio.create_task(made.run())
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=20) as http:
            yield http
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def until_answered(http: httpx.AsyncClient) -> None:
    async with asyncio.timeout(STARTED_S):
        while True:
            with contextlib.suppress(httpx.TransportError):
                if (await http.get("/healthz")).text == "ok":
                    return
            await asyncio.sleep(0.02)


def children() -> list[int]:
    """Processes that this one has started and that run `extender.admin`."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            is_child = f"\nPPid:\t{os.getpid()}\n" in (path.parent / "status").read_text()
            if is_child and b"extender.admin" in path.read_bytes():
                found.append(int(path.parent.name))
    return found


async def test_a_stream_shows_a_pod_that_is_created_and_ends_with_the_process(world: World, kubeconfig: Path) -> None:
    port = free_port()
    async with running(world, kubeconfig, port) as http:
        await until_answered(http)
        assert (await http.get("/api/v1/summary")).json()["gpus"] == 6
        async with http.stream("GET", "/api/v1/events?kind=pod") as stream:
            assert stream.headers["content-type"].startswith("text/event-stream")
            lines = stream.aiter_lines()
            assert await anext(lines) == "retry: 2000"
            await asyncio.sleep(0.2)
            await world.create_pod(gpu_mem=256)
            async with asyncio.timeout(20):
                while not (line := await anext(lines)).startswith("data: "):
                    pass
            event = json.loads(line.removeprefix("data: "))
            assert (event["type"], event["object"]["name"]) == ("ADDED", "pod-1")
    assert not children()
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", port))


async def test_what_only_the_extender_knows_is_asked_of_it(world: World, kubeconfig: Path) -> None:
    world.leader.refusal_text = "another replica binds"
    pod = await world.create_pod(gpu_mem=1 << 20)
    async with running(world, kubeconfig, free_port()) as http:
        await until_answered(http)
        assert (await http.get("/api/v1/summary")).json()["scheduler"] == "another replica binds"
        found = (await http.get(f"/api/v1/pods/default/{pod['metadata']['name']}/explain")).json()
        assert found["fits"] is False
        assert "CardTooSmall" in json.dumps(found["reasons"])
        done = await http.post("/api/v1/gpus/GPU-n1-0/cordon")
        assert done.status_code == 200, done.text
    (record,) = [recorded for recorded in world.history.records if type(recorded).__name__ == "AdminAction"]
    assert (record.verb, record.outcome) == ("cordon", "done")  # type: ignore[union-attr]


async def test_where_it_listens_is_in_the_lease_of_the_leading_replica(world: World, kubeconfig: Path) -> None:
    port = free_port()
    async with running(world, kubeconfig, port) as http:
        assert world.seen.lease_annotations == {}
        await until_answered(http)
        await world.until(lambda: world.seen.lease_annotations)
    address = AdminAddress(f"http://127.0.0.1:{port}")
    assert world.seen.lease_annotations == admin_address.annotations(IDENTITY, address)


async def test_a_history_of_its_own_is_asked_where_it_leads_only(
    world: World, kubeconfig: Path, tmp_path: Path
) -> None:
    """The extender tells its admin process with each snapshot which replica leads."""
    async with running(world, kubeconfig, free_port(), history_dir=tmp_path, history_url="") as http:
        await until_answered(http)
        answer = await http.get("/api/v1/usage")
        assert (answer.status_code, answer.json()["detail"]) == (503, leader_relay.NOBODY_LEADS)
        world.cluster.leases.put(WatchedLease(leadership.LEASE, "other", "2026-01-01T00:00:00.000000Z", 10))
        await another_snapshot()
        assert "replica other leads" in (await http.get("/api/v1/usage")).json()["detail"]
        world.cluster.leases.put(WatchedLease(leadership.LEASE, IDENTITY, "2026-01-01T00:00:01.000000Z", 10))
        await another_snapshot()
        assert "database does not answer" in (await http.get("/api/v1/usage")).json()["detail"]  # no drain has made it


async def another_snapshot() -> None:
    await asyncio.sleep(assembly.MAX_AGE_S + 0.1)


async def test_it_gives_way_to_the_extender_and_is_out_of_reach_of_ctrl_c(world: World, kubeconfig: Path) -> None:
    """Priorities are compared within a session: outside of control groups each session has an equal part."""
    async with running(world, kubeconfig, free_port()) as http:
        await until_answered(http)
        (pid,) = children()
        assert os.getpriority(os.PRIO_PROCESS, pid) == 19
        assert os.getsid(pid) == os.getsid(0)
        assert os.getpgid(pid) == pid


async def test_it_gives_way_only_when_it_has_started(kubeconfig: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the lowest priority its start, 3 s of a processor, takes half a minute on a machine with much other work."""
    steps: list[str] = []
    monkeypatch.setattr(adapters_process, "give_way", lambda: steps.append("gives way"))
    monkeypatch.setattr(admin_main, "_reports", lambda _: steps.append("imports the database"))

    async def serve(*_: object) -> None:
        steps.append("listens")

    monkeypatch.setattr(server, "serve", serve)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        cluster = cluster_client.ClusterClient(*await asyncio.open_connection(sock=ours))
        listener = Listener("127.0.0.1", 0, is_loopback=True)
        start = StartMessage(listener, "", False, kubeconfig, "test", None, "", None, 1024, names.NAMESPACE, "0.2.0")
        await admin_main._serve(start, cluster)
        cluster._writer.close()
    assert steps == ["imports the database", "gives way", "listens"]


async def test_a_killed_process_is_started_again(world: World, kubeconfig: Path) -> None:
    async with running(world, kubeconfig, free_port()) as http:
        await until_answered(http)
        (child,) = children()
        os.kill(child, signal.SIGKILL)
        async with asyncio.timeout(STARTED_S):
            while child in children():
                await asyncio.sleep(0.02)
        await until_answered(http)
        assert (await http.get("/api/v1/summary")).json()["gpus"] == 6


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.parametrize("is_asked", [True, False], ids=["while it is asked", "while it rests"])
async def test_a_process_that_was_stopped_for_a_while_shows_soon_what_has_come(
    world: World, kubeconfig: Path, *, is_asked: bool
) -> None:
    async with running(world, kubeconfig, free_port()) as http:
        await until_answered(http)
        (child,) = children()
        asked = [asyncio.create_task(http.get("/api/v1/pending")) for _ in range(8 * is_asked)]
        await asyncio.sleep(0.001 if is_asked else 1.0)
        os.kill(child, signal.SIGSTOP)
        names = [(await world.create_pod(gpu_mem=1 << 20))["metadata"]["name"] for _ in range(20)]
        await asyncio.sleep(STOPPED_S)
        os.kill(child, signal.SIGCONT)
        await asyncio.gather(*asked, return_exceptions=True)
        async with asyncio.timeout(CAUGHT_UP_S):
            while await pending(http) != sorted(names):
                await asyncio.sleep(0.1)


async def pending(http: httpx.AsyncClient) -> list[str]:
    with contextlib.suppress(httpx.HTTPError):
        answer = await http.get("/api/v1/pending")
        if answer.status_code == 200:
            return sorted(row["name"] for row in answer.json()["items"])
    return []


async def test_a_port_in_use_ends_nothing_and_is_tried_again(world: World, kubeconfig: Path) -> None:
    port = free_port()
    other = socket.create_server(("127.0.0.1", port))
    async with running(world, kubeconfig, port) as http:
        async with asyncio.timeout(STARTED_S):
            first = await _until_a_child_but(None)
            await _until_a_child_but(first)
        other.close()
        await until_answered(http)


async def _until_a_child_but(known: int | None) -> int:
    while True:
        found: list[Any] = [child for child in children() if child != known]
        if found:
            return int(found[0])
        await asyncio.sleep(0.02)
