"""The simulated kube-scheduler with a fake extender."""

import asyncio
import inspect
import json
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import aiohttp
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from vgpu.domain import names
from vgpu.domain.json_types import JsonObject
from vgpu.simulator import scheduling_status
from vgpu.simulator.api import http_server, resources, server
from vgpu.simulator.api.cluster import InMemoryCluster
from vgpu.simulator.api.resources import EVENTS, PODS, Target
from vgpu.simulator.extender_client import ExtenderClient, ExtenderError
from vgpu.simulator.scheduler import Profile, Scheduler, vgpu_profile

NODES = ["n1", "n2", "n3"]


class FakeExtender:
    """An extender that accepts every node and binds; a test may set other responses."""

    def __init__(self, cluster: InMemoryCluster) -> None:
        self.cluster = cluster
        self.calls: list[tuple[str, JsonObject]] = []
        self.responses: dict[str, Any] = {}

    async def endpoint(self, request: Request) -> Response:
        verb, args = request.url.path[1:], json.loads(await request.body())
        self.calls.append((verb, args))
        response = self.responses.get(verb) or getattr(self, f"_{verb}")
        result = await response(args) if inspect.iscoroutinefunction(response) else response
        return result if isinstance(result, Response) else Response(json.dumps(result))

    async def _filter(self, args: JsonObject) -> JsonObject:
        return {"NodeNames": args["NodeNames"], "FailedNodes": None, "Error": ""}

    async def _prioritize(self, args: JsonObject) -> list[JsonObject]:
        return [{"Host": name, "Score": number} for number, name in enumerate(args["NodeNames"])]

    async def _bind(self, args: JsonObject) -> JsonObject:
        target = Target(PODS, args["PodNamespace"], args["PodName"], "binding")
        await self.cluster.bind(target, {"metadata": {"uid": args["PodUID"]}, "target": {"name": args["Node"]}})
        return {"Error": ""}


@pytest.fixture
def cluster() -> InMemoryCluster:
    """A cluster on the real clock, for the pauses between attempts."""
    return server.make_cluster(lambda: datetime.now(UTC), lambda: str(uuid.uuid4()))


@pytest.fixture
async def fake(cluster: InMemoryCluster) -> FakeExtender:
    for name in NODES:
        status = {"allocatable": {names.SLICE: "100", names.CARD: "2"}}
        await cluster.create(Target(resources.NODES), {"metadata": {"name": name}, "spec": {}, "status": status})
    return FakeExtender(cluster)


@pytest.fixture
async def extender(fake: FakeExtender) -> AsyncIterator[ExtenderClient]:
    app = Starlette(routes=[Route("/{verb}", fake.endpoint, methods=["POST"])])
    async with http_server.serve(app) as address, aiohttp.ClientSession() as session:
        yield ExtenderClient(session, f"http://{address}", timeout_s=1)


@asynccontextmanager
async def running(cluster: InMemoryCluster, profile: Profile) -> AsyncIterator[None]:
    task = asyncio.create_task(Scheduler(cluster, profile).run())
    yield
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def until(check: Callable[[], object]) -> None:
    async with asyncio.timeout(30):
        while not check():
            await asyncio.sleep(0.01)


async def create(cluster: InMemoryCluster, name: str, slices: int = 4, scheduler: str = names.SCHEDULER) -> Target:
    limits = {names.SLICE: slices, names.GPU_MEM: slices * 256} if slices else {}
    spec = {"schedulerName": scheduler, "containers": [{"name": "main", "resources": {"limits": limits}}]}
    await cluster.create(Target(PODS, "default"), {"metadata": {"name": name}, "spec": spec})
    return Target(PODS, "default", name)


def node(cluster: InMemoryCluster, pod: Target) -> str:
    return str(cluster.get(pod)["spec"].get("nodeName", ""))


async def test_a_pod_goes_where_the_extender_scores_highest(
    cluster: InMemoryCluster, fake: FakeExtender, extender: ExtenderClient
) -> None:
    pod = await create(cluster, "a")
    async with running(cluster, vgpu_profile(extender)):
        await until(lambda: node(cluster, pod))
    assert node(cluster, pod) == "n3"
    assert [verb for verb, _ in fake.calls] == ["filter", "prioritize", "bind"]
    assert fake.calls[0][1]["NodeNames"] == NODES
    assert fake.calls[0][1]["Nodes"] is None
    uid = cluster.get(pod)["metadata"]["uid"]
    assert fake.calls[2][1] == {"PodName": "a", "PodNamespace": "default", "PodUID": uid, "Node": "n3"}


def screening_profile(extender: ExtenderClient) -> Profile:
    """The profile of a scheduler that screens nodes by slices before it calls the extender."""
    return replace(vgpu_profile(extender), ignored=frozenset(names.USER_RESOURCES))


async def test_only_screened_nodes_are_filtered_and_a_single_node_is_not_scored(
    cluster: InMemoryCluster, fake: FakeExtender, extender: ExtenderClient
) -> None:
    for name in ("n1", "n3"):
        status = {"allocatable": {names.SLICE: "3"}}
        await cluster.update(Target(resources.NODES, name=name, subresource="status"), {"status": status})
    pod = await create(cluster, "a")
    async with running(cluster, screening_profile(extender)):
        await until(lambda: node(cluster, pod))
    assert [(verb, args.get("NodeNames")) for verb, args in fake.calls] == [("filter", ["n2"]), ("bind", None)]


@pytest.mark.heavy
async def test_a_pod_that_fits_nowhere_has_an_event_and_is_retried(
    cluster: InMemoryCluster, fake: FakeExtender, extender: ExtenderClient
) -> None:
    refused = {"n1": "CardTooSmall: x", "n2": "CardTooSmall: x"}
    fake.responses["filter"] = {
        "NodeNames": None,
        "FailedNodes": {"n3": "PluginAway: y"},
        "FailedAndUnresolvableNodes": refused,
    }
    pod = await create(cluster, "a")
    why = "0/3 nodes are available: 1 PluginAway: y, 2 CardTooSmall: x."
    async with running(cluster, vgpu_profile(extender)):
        await until(lambda: scheduling_status.last_reason(cluster.get(pod)) == why)
        await until(lambda: len(fake.calls) > 1)
        events = cluster.store.objects(EVENTS.name)
        assert [(event["reason"], event["message"]) for event in events] == [("FailedScheduling", why)]
        fake.responses.clear()
        await until(lambda: node(cluster, pod))
    assert scheduling_status.last_reason(cluster.get(pod)) == ""


async def test_a_pod_whose_binding_failed_is_retried(
    cluster: InMemoryCluster, fake: FakeExtender, extender: ExtenderClient
) -> None:
    fake.responses["bind"] = {"Error": "NotLeader: not me"}
    pod = await create(cluster, "a")
    async with running(cluster, vgpu_profile(extender)):
        await until(lambda: "NotLeader" in scheduling_status.last_reason(cluster.get(pod)))
        fake.responses.clear()
        await until(lambda: node(cluster, pod))


async def test_slices_of_pods_being_bound_are_not_free(
    cluster: InMemoryCluster, fake: FakeExtender, extender: ExtenderClient
) -> None:
    """A slow Binding must not let the next pods through the screening."""
    released = asyncio.Event()

    async def bind_later(args: JsonObject) -> JsonObject:
        await released.wait()
        return await fake._bind(args)

    fake.responses["bind"] = bind_later
    pods = [await create(cluster, name, slices=60) for name in "abcd"]
    async with running(cluster, screening_profile(extender)):
        await until(lambda: "3 Insufficient" in scheduling_status.last_reason(cluster.get(pods[3])))
        released.set()
        await until(lambda: all(node(cluster, pod) for pod in pods[:3]))
    assert sorted(node(cluster, pod) for pod in pods[:3]) == NODES


async def test_other_pods_never_reach_the_extender(
    cluster: InMemoryCluster, fake: FakeExtender, extender: ExtenderClient
) -> None:
    plain = await create(cluster, "a", slices=0)
    foreign = await create(cluster, "b", slices=0, scheduler="default-scheduler")
    async with running(cluster, vgpu_profile(extender)):
        await until(lambda: node(cluster, plain))
    assert (fake.calls, node(cluster, foreign)) == ([], "")


async def test_without_an_extender_a_pod_waits_for_gpu_memory(cluster: InMemoryCluster, fake: FakeExtender) -> None:
    """A pod that the webhook has not changed goes to the default scheduler, and waits."""
    assert fake.calls == []
    pod = await create(cluster, "a", scheduler="default-scheduler")
    async with running(cluster, Profile("default-scheduler")):
        await until(lambda: scheduling_status.last_reason(cluster.get(pod)))
    assert scheduling_status.last_reason(cluster.get(pod)) == "0/3 nodes are available: 3 Insufficient vgpu.io/gpu-mem."


@pytest.mark.parametrize(
    ("response", "message"),
    [
        ({"NodeNames": ["n1", "unknown"]}, "not asked about"),
        ({"NodeNames": [], "Error": "broken"}, "broken"),
        (Response("no", 500), "HTTP 500"),
        (Response("no"), "truncated"),
    ],
)
async def test_invalid_responses_are_errors(
    fake: FakeExtender, extender: ExtenderClient, response: Any, message: str
) -> None:
    fake.responses["filter"] = response
    with pytest.raises(ExtenderError, match=message):
        await extender.filter({}, NODES)


async def test_one_fractional_score_drops_all_scores(fake: FakeExtender, extender: ExtenderClient) -> None:
    """Go's decoder refuses the whole list for a single float."""
    fake.responses["prioritize"] = [{"Host": "n1", "Score": 1}, {"Host": "n3", "Score": 9.5}]
    assert await extender.best({}, ["n2", "n1", "n3"]) == "n2"


async def test_an_unreachable_extender_is_an_error(fake: FakeExtender) -> None:
    assert fake.calls == []
    async with aiohttp.ClientSession() as session:
        with pytest.raises(ExtenderError, match="filter: "):
            await ExtenderClient(session, "http://127.0.0.1:1").filter({}, NODES)


@pytest.mark.usefixtures("fake")
async def test_taints_selectors_and_gates_are_obeyed(cluster: InMemoryCluster, extender: ExtenderClient) -> None:
    taints = [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]
    specs: dict[str, JsonObject] = {"n1": {"taints": taints}, "n2": {"unschedulable": True}, "n3": {}}
    for name, marks in specs.items():
        labels = {"disk": "hdd"} if name == "n3" else {}
        changed = {"metadata": {"name": name, "labels": labels}, "spec": marks}
        await cluster.update(Target(resources.NODES, name=name), changed)
    limits = {names.SLICE: 4, names.GPU_MEM: 1024}
    spec = {
        "schedulerName": names.SCHEDULER, "nodeSelector": {"disk": "hdd"},
        "containers": [{"name": "main", "resources": {"limits": limits}}],
    }  # fmt: skip
    gated = {**spec, "schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}
    ssd = {**spec, "nodeSelector": {"disk": "ssd"}}
    anywhere = {**spec, "nodeSelector": {}}
    for name, own in {"gated": gated, "ssd": ssd, "anywhere": anywhere}.items():
        await cluster.create(Target(PODS, "default"), {"metadata": {"name": name}, "spec": own})
    async with running(cluster, vgpu_profile(extender)):
        await until(lambda: node(cluster, Target(PODS, "default", "anywhere")) == "n3")
        await until(lambda: scheduling_status.last_reason(cluster.get(Target(PODS, "default", "ssd"))))
    assert scheduling_status.last_reason(cluster.get(Target(PODS, "default", "ssd"))) == (
        "0/3 nodes are available: 1 node(s) were unschedulable, 2 node(s) didn't match Pod's node affinity/selector."
    )
    assert node(cluster, Target(PODS, "default", "gated")) == ""
    assert not scheduling_status.last_reason(cluster.get(Target(PODS, "default", "gated")))
