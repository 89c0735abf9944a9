"""Two extenders, each a process with a SQLite history of its own: the leading one's answers, whichever is asked."""

import asyncio
import itertools
import json
import signal
import sys
from asyncio import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests import kubeconfigs, strategies
from tests.extender.conftest import PODS, add_node
from tests.extender.test_main import LEASE, free_port, holder, until_ready
from vgpu.adapters.kubernetes import lease
from vgpu.adapters.kubernetes.client import KubernetesClient
from vgpu.domain import names
from vgpu.domain.identifiers import NodeName
from vgpu.simulator.api import server

WITHIN_S = 60.0
POD = strategies.admit(strategies.pod(strategies.container(gpu_mem=256))) | {
    "metadata": {"name": "p", "namespace": "default"}
}
FOLLOWED = {"decision", "start", "card"}  # kinds of events that a follower stores too
OF_THE_LEADER = {"admin", "refusals"}


class Replica:
    """An extender on a loopback address of its own, with what it answers."""

    def __init__(self, name: str, kubeconfig: Path, http: httpx.AsyncClient) -> None:
        self.name = name
        self.verbs, self.rest = f"127.0.1.{ord(name) % 8}:{free_port()}", f"127.0.1.{ord(name) % 8}:{free_port()}"
        self._http = http
        self._flags = [
            f"--kubeconfig={kubeconfig}", f"--listen={self.verbs}", f"--admin-listen={self.rest}",
            f"--history-dir={kubeconfig.parent / name}", f"--identity={name}",
        ]  # fmt: skip
        self.process: subprocess.Process | None = None

    async def start(self) -> None:
        self.process = await asyncio.create_subprocess_exec(sys.executable, "-m", "extender", *self._flags)
        await until_ready(self._http, f"http://{self.verbs}/readyz")
        await until_ready(self._http, f"http://{self.rest}/healthz")

    async def end(self, how: signal.Signals = signal.SIGTERM) -> None:
        if self.process is not None and self.process.returncode is None:
            self.process.send_signal(how)
            await self.process.wait()

    async def verb(self, verb: str, **call: Any) -> Any:
        return (await self._http.post(f"http://{self.verbs}/{verb}", json=call)).json()

    async def cordon(self, verb: str) -> None:
        for card in ("GPU-n1-0", "GPU-n1-1"):
            answer = await self._http.post(f"http://{self.rest}/api/v1/gpus/{card}/{verb}")
            assert answer.status_code == 200, answer.text

    async def ask(self, path: str) -> httpx.Response:
        return await self._http.get(f"http://{self.rest}/api/v1{path}")

    async def events(self) -> list[tuple[str, Any]]:
        """Return all events, by kind; empty where the replica does not answer now."""
        answer = await self.ask("/history?limit=1000&since=1h")
        return [(item["kind"], item["event"]) for item in answer.json().get("items", ())]


@asynccontextmanager
async def cluster(folder: Path) -> AsyncIterator[tuple[KubernetesClient, str]]:
    """A cluster of one node, whose device plugin lives; yield its client and URL."""
    numbers = itertools.count(1)
    api = server.make_cluster(lambda: datetime.now(UTC), lambda: f"{next(numbers):08x}-uid")
    async with (
        server.serving(api) as url,
        await KubernetesClient.connect(str(kubeconfigs.write(folder, url)), user_agent="test") as client,
    ):
        await add_node(client, "n1")

        async def beat() -> None:
            while True:
                await lease.renew(client, names.NAMESPACE, names.node_lease(NodeName("n1")), "n1", 3, datetime.now(UTC))
                await asyncio.sleep(1)

        beating = asyncio.create_task(beat())
        try:
            yield client, url
        finally:
            beating.cancel()
            await asyncio.gather(beating, return_exceptions=True)


async def until(condition: Any, what: str) -> None:
    found = None
    try:
        async with asyncio.timeout(WITHIN_S):
            while not (found := await condition())[0]:
                await asyncio.sleep(0.2)
    except TimeoutError:
        pytest.fail(f"{what}: {found}")


async def bind(client: KubernetesClient, leader: Replica) -> None:
    """Bind a pod that was refused before, and start its container."""
    pod = json.loads(await client.post(PODS, POD))
    call = {"PodName": "p", "PodNamespace": "default", "PodUID": pod["metadata"]["uid"], "Node": "n1"}

    async def is_judged(*, fits: bool) -> tuple[bool, Any]:
        answer = await leader.verb("filter", Pod=pod, NodeNames=["n1"])
        return (answer.get("NodeNames") == ["n1"]) == fits, answer

    await until(lambda: is_judged(fits=False), "the cordoned cards are refused")
    await leader.cordon("uncordon")
    await until(lambda: is_judged(fits=True), "the pod fits")
    assert (await leader.verb("bind", **call))["Error"] == ""
    began = datetime.now(UTC).isoformat(timespec="seconds")
    running = {"name": "main", "restartCount": 0, "state": {"running": {"startedAt": began}}}
    await client.patch(f"{PODS}/p/status", {"status": {"phase": "Running", "containerStatuses": [running]}})


@pytest.mark.heavy
@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    "how", [signal.SIGTERM, pytest.param(signal.SIGKILL, marks=pytest.mark.slow)], ids=["stopped", "killed"]
)
async def test_the_leading_replicas_history_answers_whichever_is_asked(tmp_path: Path, how: signal.Signals) -> None:
    async with cluster(tmp_path) as (client, url), httpx.AsyncClient(timeout=20) as http:
        a, b = (Replica(name, tmp_path / "kubeconfig", http) for name in "ab")
        try:
            await a.start()
            await until(lambda: leads(http, url, "a"), "a leads")
            await b.start()
            await until(lambda: publishes(http, url, "a"), "a has published its address")
            await b.cordon("cordon")  # a does it: its history answers
            await bind(client, a)
            await until(lambda: has(b, FOLLOWED | OF_THE_LEADER), "the history that answers has every kind of event")
            period = f"since=1h&until={datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
            for path in (f"/history?{period}", f"/usage?{period}&by=owner", "/history?since=1h&kind=admin"):
                answers = [await replica.ask(path) for replica in (a, b) * 3]
                assert {answer.status_code for answer in answers} == {200}
                (items,) = {json.dumps(answer.json()["items"]) for answer in answers}
                assert items != "[]"
            await a.end(how)
            if how is signal.SIGKILL:
                await until(lambda: says_who_does_not_answer(b), "b refuses while a's Lease lasts")
            await until(lambda: has(b, FOLLOWED), "the new leader has recorded as a follower")
            later = await b.events()
            assert not {kind for kind, _ in later} & OF_THE_LEADER
            (decision,) = (event for kind, event in later if kind == "decision")
            assert (decision["source"], decision["refused"]) == ("watch", {})
            await a.start()
            assert await a.events() == await b.events() == later
        finally:
            await asyncio.gather(a.end(signal.SIGKILL), b.end(signal.SIGKILL))


async def leads(http: httpx.AsyncClient, url: str, name: str) -> tuple[bool, str]:
    found = await holder(http, url)
    return found.startswith(f"{name}_"), found


async def publishes(http: httpx.AsyncClient, url: str, name: str) -> tuple[bool, Any]:
    metadata = (await http.get(url + LEASE)).json()["metadata"]
    return f'"{name}_' in metadata.get("annotations", {}).get(names.ADMIN_ANNOTATION, ""), metadata


async def says_who_does_not_answer(replica: Replica) -> tuple[bool, str]:
    answer = await replica.ask("/usage")
    is_refused = (answer.status_code, answer.headers.get("retry-after")) == (503, "5")
    return is_refused and answer.json()["detail"].startswith("replica a_"), answer.text


async def has(replica: Replica, kinds: set[str]) -> tuple[bool, Any]:
    found = {kind for kind, _ in await replica.events()}
    return found >= kinds, found
