"""Two extenders on one API server in virtual time: a Binding of the last leader, carried out late, fills no card twice.

The card takes one of the two pods. The first extender's Binding is carried out after it gave up, at any time before its
expiry; it is stopped or killed meanwhile, and the second extender is asked to bind the other pod each second.
"""

import asyncio
import itertools
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender import assembly, shutdown
from extender.clocks import Clocks
from extender.lead import binding_outcome
from extender.lead.leadership import DURATION_S, RENEW_S, Leadership
from extender.protocol.wire import BindArgs
from extender.settings import ExtenderSettings
from tests import strategies
from tests.extender import virtual_time
from tests.extender.conftest import PODS, gpu_node
from tests.extender.virtual_time import VirtualClient
from vgpu.adapters.kubernetes import lease
from vgpu.domain import names
from vgpu.domain.identifiers import Namespace, NodeName
from vgpu.simulator.api import server

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
CARD_MIB = 2048


def time() -> float:
    return asyncio.get_running_loop().time()


def now() -> datetime:
    return EPOCH + timedelta(seconds=time())


class Replica:
    """One extender without its HTTP server."""

    def __init__(self, client: VirtualClient, identity: str) -> None:
        clocks = Clocks(time, now)
        seen = assembly.Observers(client, ExtenderSettings.model_construct(), clocks, lambda: 1.0)
        self.watches = seen.watches
        self.leadership = Leadership(
            client, seen.cluster.leases, self.watches.pods,
            namespace=names.NAMESPACE, identity=identity, clock=time, now=now,
        )  # fmt: skip
        self.binder = assembly.actors(seen, self.leadership).verbs.binder
        self.background = asyncio.create_task(self._run())

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.watches.run())
            await self.watches.wait()
            await self.leadership.run()

    async def terminate(self) -> None:
        """Stop as on SIGTERM."""
        await shutdown.shut_down(self.binder, self.leadership, self.background)

    async def kill(self) -> None:
        """Stop as by kill -9: what was sent stays sent, nothing follows."""
        tasks = [self.background, *self.binder._poller._tasks.values(), *self.binder._in_flight.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Site:
    """One node with one card, its device plugin's heartbeat, two pods that fit one at a time, and the API server."""

    def __init__(self, travel_s: Callable[[str, str], float]) -> None:
        numbers = itertools.count(1)
        self.api = server.make_cluster(now, lambda: f"{next(numbers):08x}-uid")
        self.client = VirtualClient(self.api, travel_s)
        self.direct = VirtualClient(self.api, lambda *_: 0.0)
        self.pods: list[dict[str, Any]] = []

    async def prepare(self) -> None:
        node = {"kind": "Node", "metadata": {"name": "n1"}, "status": {"allocatable": {names.SLICE: "8"}}}
        await self.direct.post("/api/v1/nodes", node)
        await self.direct.post(names.GPUNODES_PATH, gpu_node("n1", cards=1))
        status = gpu_node("n1", cards=1)["status"]
        await self.direct.patch(f"{names.GPUNODES_PATH}/n1/status", {"status": status})
        for name in ("a", "b"):
            obj = strategies.admit(strategies.pod(strategies.container(gpu_mem=CARD_MIB * 3 // 4)))
            obj["metadata"] = {"name": name, "namespace": "default"}
            del obj["spec"]["nodeName"]
            await self.direct.post(PODS, obj)
        self.pods = self.api.store.objects("pods")

    async def heartbeats(self) -> None:
        while True:
            await lease.renew(self.direct, names.NAMESPACE, names.node_lease(NodeName("n1")), "n1", 3, now())
            await asyncio.sleep(1)

    def call(self, pod: int) -> BindArgs:
        return BindArgs(
            self.pods[pod]["metadata"]["name"], Namespace("default"), self.pods[pod]["metadata"]["uid"], NodeName("n1")
        )

    def bound(self) -> list[str]:
        return [obj["metadata"]["name"] for obj in self.api.store.objects("pods") if obj["spec"].get("nodeName")]

    def holder(self) -> str:
        lease_object = self.api.store.get("leases.coordination.k8s.io", (names.NAMESPACE, "vgpu-extender"))
        return str((lease_object or {}).get("spec", {}).get("holderIdentity", ""))


async def until_it_binds(replica: Replica) -> None:
    while replica.leadership.refusal():
        await asyncio.sleep(0.1)


async def change_leader(late_s: float, stop_after_s: float, *, killed: bool) -> None:
    """The first replica's Binding takes `late_s`; it is stopped `stop_after_s` after kube-scheduler's call."""
    late = iter([late_s])

    def travel_s(_: str, path: str) -> float:
        return next(late, 0.01) if path.endswith("/binding") else 0.01

    site = Site(travel_s)
    await site.prepare()
    heartbeats = asyncio.create_task(site.heartbeats())
    first = Replica(site.client, "a")
    await until_it_binds(first)
    second = Replica(site.client, "b")
    call = asyncio.create_task(first.binder.bind(site.call(0)))
    await asyncio.sleep(stop_after_s)
    stopping = asyncio.create_task(first.kill() if killed else first.terminate())
    end, stopped = time() + 60, time()
    led = 0.0
    while time() < end:
        await second.binder.bind(site.call(1))
        led = led or (0.0 if second.leadership.refusal() else time() - stopped)
        assert len(site.bound()) < 2, "two pods on a card that takes one"
        await asyncio.sleep(1)
    assert site.bound() == ["a"]
    assert 0 < led <= DURATION_S + 2 * RENEW_S + shutdown.DRAIN_S
    await asyncio.gather(call, stopping, return_exceptions=True)
    for task in (heartbeats, second.background):
        task.cancel()
    await second.kill()


LATEST_S = binding_outcome.POST_TIMEOUT_S * 2 + binding_outcome.ETCD_TIMEOUT_S  # received late, then carried out late


@pytest.mark.parametrize(
    ("late_s", "stop_after_s", "killed"), [(LATEST_S, 3.5, False), (LATEST_S, 0.5, False), (LATEST_S, 0.5, True)]
)
def test_a_late_binding_of_the_last_leader_fills_no_card_twice(
    late_s: float, stop_after_s: float, killed: bool
) -> None:
    virtual_time.run(change_leader(late_s, stop_after_s, killed=killed))


@pytest.mark.slow
@pytest.mark.timeout(120)
@given(st.floats(0.02, LATEST_S), st.floats(0.02, 8.0), st.booleans())
def test_no_binding_of_the_last_leader_fills_a_card_twice(late_s: float, stop_after_s: float, killed: bool) -> None:
    virtual_time.run(change_leader(late_s, stop_after_s, killed=killed))


async def stop_with_an_unknown_outcome(*, reads_fail: bool) -> str:
    """Stop the only replica after a Binding that got lost; return the Lease's holder after that."""

    def travel_s(method: str, path: str) -> float:
        is_lost = path.endswith("/binding") or (reads_fail and method == "GET" and path.startswith(PODS + "/"))
        return 1e6 if is_lost else 0.01

    site = Site(travel_s)
    await site.prepare()
    heartbeats = asyncio.create_task(site.heartbeats())
    replica = Replica(site.client, "a")
    await until_it_binds(replica)
    assert "TimeoutError" in await replica.binder.bind(site.call(0))
    began = time()
    await replica.terminate()
    assert time() - began <= shutdown.DRAIN_S + 1
    heartbeats.cancel()
    return site.holder()


def test_the_lease_is_released_only_where_every_outcome_is_known() -> None:
    async def main() -> None:
        assert await stop_with_an_unknown_outcome(reads_fail=False) == ""
        assert await stop_with_an_unknown_outcome(reads_fail=True) == "a"

    virtual_time.run(main())


def test_a_pod_that_was_bound_just_before_the_release_is_counted_although_the_watch_lags() -> None:
    async def main() -> None:
        def travel_s(method: str, path: str) -> float:
            return 5.0 if (method, path) == ("WATCH", "/api/v1/pods") else 0.01

        site = Site(travel_s)
        await site.prepare()
        heartbeats = asyncio.create_task(site.heartbeats())
        first = Replica(site.client, "a")
        await until_it_binds(first)
        second = Replica(site.client, "b")
        await asyncio.sleep(5)
        assert await first.binder.bind(site.call(0)) == ""
        await first.terminate()
        await until_it_binds(second)
        assert "CardInsufficientMemory" in await second.binder.bind(site.call(1))
        heartbeats.cancel()
        await second.kill()

    virtual_time.run(main())
