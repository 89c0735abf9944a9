"""The simulated kubelet: pods start, fail and end on one node."""

from datetime import UTC, datetime, timedelta

import pytest

from extender.state.fields import container_use
from vgpu.domain import names
from vgpu.domain.grants import assignment
from vgpu.domain.grants.assignment import Assignment, Grant
from vgpu.domain.identifiers import ContainerName
from vgpu.domain.json_types import JsonObject
from vgpu.simulator import nodes
from vgpu.simulator.api import resources, server
from vgpu.simulator.api.resources import PODS, Target
from vgpu.simulator.kubelet import RUNS_FOR, Kubelet

NODE = nodes.fleet(1, 2, [80 * 1024], 256)[0]
FIRST, SECOND = (card.uuid for card in NODE.cards)


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


class NodeWorld:
    """One simulated node, and helpers that put pods on it."""

    def __init__(self) -> None:
        self.clock = Clock()
        uids = iter(range(10_000))
        self.cluster = server.make_cluster(self.clock, lambda: f"uid-{next(uids)}")
        self.kubelet = Kubelet(self.cluster, NODE)

    async def put(self, name: str, limits: dict[str, int], *grants: Grant, **annotations: str) -> Target:
        metadata: JsonObject = {
            "name": name,
            "annotations": {key.replace("__", "/"): v for key, v in annotations.items()},
        }
        spec = {"containers": [{"name": "main", "resources": {"limits": limits}}]}
        await self.cluster.create(Target(PODS, "default"), {"metadata": metadata, "spec": spec})
        chosen = {names.ASSIGNMENT: assignment.encode(Assignment({ContainerName("main"): grants}))} if grants else {}
        target = Target(PODS, "default", name)
        await self.cluster.bind(target, {"metadata": {"annotations": chosen}, "target": {"name": NODE.name}})
        return target

    def status(self, target: Target) -> JsonObject:
        status: JsonObject = self.cluster.get(target)["status"]
        return status

    def card(self, index: int) -> JsonObject:
        status = self.cluster.get(Target(resources.GPUNODES, name=NODE.name))["status"]
        card: JsonObject = status["cards"][index]
        return card

    def allocatable(self, resource: str) -> str:
        amount: str = self.cluster.get(Target(resources.NODES, name=NODE.name))["status"]["allocatable"][resource]
        return amount


@pytest.fixture
async def world() -> NodeWorld:
    made = NodeWorld()
    await made.kubelet.register()
    return made


async def test_a_node_reports_its_cards_and_is_ready(world: NodeWorld) -> None:
    assert (world.allocatable(names.SLICE), world.allocatable(names.CARD)) == ("640", "2")
    assert (world.card(1)["uuid"], world.card(1)["memoryMiB"], world.card(1)["heldSlices"]) == (SECOND, 81920, 0)
    lease = Target(resources.LEASES, names.NAMESPACE, names.node_lease(NODE.name))
    first = world.cluster.get(lease)["spec"]
    assert (first["holderIdentity"], first["leaseDurationSeconds"]) == (NODE.name, 3)
    world.clock.now += timedelta(seconds=1)
    await world.kubelet.round()
    assert world.cluster.get(lease)["spec"]["renewTime"] > first["renewTime"]
    await world.kubelet.plugin.release()
    assert world.cluster.get(lease)["spec"]["holderIdentity"] == ""


async def test_a_share_runs_and_its_slices_are_held(world: NodeWorld) -> None:
    pod = await world.put("a", {names.GPU_MEM: 1000, names.GPU_CORES: 30}, Grant(FIRST, 1000, 30))
    await world.kubelet.round()
    assert world.status(pod)["phase"] == "Running"
    assert (world.card(0)["heldSlices"], world.card(1)["heldSlices"]) == (4, 0)
    assert (world.allocatable(names.SLICE), world.allocatable(names.CARD)) == ("640", "1")


async def test_a_whole_card_removes_its_slices(world: NodeWorld) -> None:
    await world.put("a", {names.GPU: 1}, Grant(SECOND, 81920, whole=True))
    await world.kubelet.round()
    assert (world.card(1)["heldWhole"], world.card(1)["heldSlices"]) == (True, 0)
    assert (world.allocatable(names.SLICE), world.allocatable(names.CARD)) == ("320", "2")


async def test_without_an_assignment_a_pod_does_not_start(world: NodeWorld) -> None:
    pod = await world.put("a", {names.GPU_MEM: 1024})
    forged = await world.put("b", {names.GPU_MEM: 1024}, Grant(FIRST, 9999))
    await world.kubelet.round()
    for target in (pod, forged):
        status = world.status(target)
        assert status["phase"] == "Pending"
        assert status["containerStatuses"][0]["state"]["waiting"]["reason"] == "CreateContainerConfigError"
    assert world.card(0)["heldSlices"] == 0


async def test_a_pod_that_does_not_fit_fails(world: NodeWorld) -> None:
    first = await world.put("a", {names.GPU_MEM: 50_000}, Grant(FIRST, 50_000))
    second = await world.put("b", {names.GPU_MEM: 50_000}, Grant(FIRST, 50_000))
    third = await world.put("c", {names.GPU: 1}, Grant(FIRST, 81920, whole=True))
    await world.kubelet.round()
    assert [world.status(pod)["phase"] for pod in (first, second, third)] == ["Running", "Failed", "Failed"]
    assert world.status(second)["reason"] == "UnexpectedAdmissionError"


async def test_pods_without_a_share_run(world: NodeWorld) -> None:
    pod = await world.put("a", {})
    await world.kubelet.round()
    assert world.status(pod)["phase"] == "Running"


async def test_a_pod_succeeds_after_its_run_time_and_holds_nothing(world: NodeWorld) -> None:
    pod = await world.put("a", {names.GPU_MEM: 1024}, Grant(FIRST, 1024), **{RUNS_FOR.replace("/", "__"): "20"})
    await world.kubelet.round()
    world.clock.now += timedelta(seconds=19)
    await world.kubelet.round()
    assert world.status(pod)["phase"] == "Running"
    world.clock.now += timedelta(seconds=1)
    await world.kubelet.round()
    assert (world.status(pod)["phase"], world.card(0)["heldSlices"]) == ("Succeeded", 0)


async def test_a_deleted_pod_is_removed_and_releases_its_slices(world: NodeWorld) -> None:
    pod = await world.put("a", {names.GPU_MEM: 1024}, Grant(FIRST, 1024))
    await world.kubelet.round()
    await world.cluster.delete(pod, {})
    assert world.card(0)["heldSlices"] == 4
    await world.kubelet.round()
    assert (world.cluster.find(pod), world.card(0)["heldSlices"]) == (None, 0)


async def test_without_a_change_nothing_is_written(world: NodeWorld) -> None:
    await world.put("a", {names.GPU_MEM: 1024}, Grant(FIRST, 1024))
    await world.kubelet.round()
    version = world.cluster.store.version
    await world.kubelet.round()
    assert world.cluster.store.version == version


def test_cards_have_the_same_uuids_in_every_run() -> None:
    cards = [card.uuid for node in nodes.fleet(3, 4, [81920], 256) for card in node.cards]
    assert FIRST == "GPU-f99b1892-b539-5427-a282-45330758df27"
    assert cards[:2] == [FIRST, SECOND]
    assert len(set(cards)) == 12


async def test_what_a_pod_uses_is_reported_every_ten_seconds(world: NodeWorld) -> None:
    await world.put("a", {"vgpu.io/gpu-mem": 8192, "vgpu.io/gpu-cores": 50}, Grant(FIRST, 8192, 50))
    await world.kubelet.round()
    world.clock.now += timedelta(seconds=125)
    await world.kubelet.round()
    (uses,) = container_use.decode(world.cluster.get(Target(resources.GPUNODES, name=NODE.name))["status"]).values()
    (use,) = uses
    assert (use.container, use.gpu, use.until_ms - use.from_ms, use.used_mib) == ("main", FIRST, 120_000, 4096)
    assert 5 <= use.percent <= 45
    assert (use.gpu_ms, sum(use.levels)) == (use.percent * 1200, 2)


async def test_an_init_container_uses_nothing_beside_the_container_after_it(world: NodeWorld) -> None:
    share: JsonObject = {"resources": {"limits": {"vgpu.io/gpu-mem": 8192}}}
    spec = {"initContainers": [{"name": "init", **share}], "containers": [{"name": "main", **share}]}
    target = Target(PODS, "default", "a")
    await world.cluster.create(Target(PODS, "default"), {"metadata": {"name": "a"}, "spec": spec})
    grants = (Grant(FIRST, 8192),)
    chosen = {
        names.ASSIGNMENT: assignment.encode(Assignment({ContainerName("init"): grants, ContainerName("main"): grants}))
    }
    await world.cluster.bind(target, {"metadata": {"annotations": chosen}, "target": {"name": NODE.name}})
    await world.kubelet.round()
    world.clock.now += timedelta(seconds=125)
    await world.kubelet.round()
    (uses,) = container_use.decode(world.cluster.get(Target(resources.GPUNODES, name=NODE.name))["status"]).values()
    assert [use.container for use in uses] == ["main"]


async def test_a_deleted_gpunode_is_made_again(world: NodeWorld) -> None:
    """The publishing of a GPUNode that was gone ended the whole simulator."""
    gpunode = Target(resources.GPUNODES, name=NODE.name)
    await world.cluster.delete(gpunode, {})
    await world.kubelet.round()
    assert len(world.cluster.get(gpunode)["status"]["cards"]) == 2


async def test_a_deleted_node_goes_with_its_cards_and_pods_and_may_come_back(world: NodeWorld) -> None:
    pod = await world.put("a", {names.GPU_MEM: 1024}, Grant(FIRST, 1024))
    await world.kubelet.round()
    node, gpunode = (Target(resource, name=NODE.name) for resource in (resources.NODES, resources.GPUNODES))
    lease = Target(resources.LEASES, names.NAMESPACE, names.node_lease(NODE.name))
    old = world.cluster.get(node)["metadata"]["uid"]
    await world.cluster.delete(node, {})
    for _ in range(2):
        await world.kubelet.round()
    assert [world.cluster.find(target) for target in (gpunode, pod)] == [None, None]
    assert world.cluster.get(lease)["spec"]["holderIdentity"] == ""
    await world.cluster.create(Target(resources.NODES), {"metadata": {"name": NODE.name}})
    world.clock.now += timedelta(seconds=1)
    await world.kubelet.round()
    (owner,) = world.cluster.get(gpunode)["metadata"]["ownerReferences"]
    assert owner["uid"] == world.cluster.get(node)["metadata"]["uid"] != old
    assert (world.allocatable(names.SLICE), world.card(0)["heldSlices"]) == ("640", 0)
    assert world.cluster.get(lease)["spec"]["holderIdentity"] == NODE.name
    assert world.cluster.get(node)["status"]["conditions"][0]["type"] == "Ready"


async def test_a_node_that_is_replaced_between_two_rounds_gets_a_gpunode_of_its_own(world: NodeWorld) -> None:
    node, gpunode = (Target(resource, name=NODE.name) for resource in (resources.NODES, resources.GPUNODES))
    await world.cluster.delete(node, {})
    made = await world.cluster.create(Target(resources.NODES), {"metadata": {"name": NODE.name}})
    await world.kubelet.round()
    assert world.cluster.get(gpunode)["metadata"]["ownerReferences"][0]["uid"] == made["metadata"]["uid"]


@pytest.mark.parametrize("seconds", ["", "abc", "nan", "inf", "1e300", "-1"])
async def test_any_text_may_stand_in_the_annotation(world: NodeWorld, seconds: str) -> None:
    await world.put("a", {names.GPU_MEM: 1024}, Grant(FIRST, 1024), **{RUNS_FOR.replace("/", "__"): seconds})
    for _ in range(3):
        await world.kubelet.round()
        world.clock.now += timedelta(seconds=60)


async def test_a_status_that_another_client_writes_ends_no_round(world: NodeWorld) -> None:
    pod = await world.put("a", {names.GPU_MEM: 1024}, Grant(FIRST, 1024), **{RUNS_FOR.replace("/", "__"): "1"})
    for status in ({"phase": "Running"}, {}, {"phase": "Running", "startTime": None}, {"phase": "odd"}):
        await world.cluster.update(Target(PODS, pod.namespace, pod.name, "status"), {"status": status})
        await world.kubelet.round()
        world.clock.now += timedelta(seconds=60)


async def test_a_cordoned_card_is_counted_and_keeps_the_time_since_when(world: NodeWorld) -> None:
    gpunode = Target(resources.GPUNODES, name=NODE.name)

    async def cordon(*cordoned: bool) -> None:
        cards = [
            {"uuid": uuid, "cordoned": is_cordoned} for uuid, is_cordoned in zip((FIRST, SECOND), cordoned, strict=True)
        ]
        await world.cluster.patch(gpunode, lambda old: {**old, "spec": {"cards": cards}})
        await world.kubelet.round()

    await cordon(True, False)
    world.clock.now += timedelta(hours=1)
    await cordon(True, True)
    assert [world.card(index)["cordonedSince"] for index in (0, 1)] == ["2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"]
    assert world.cluster.get(gpunode)["status"]["summary"]["cordoned"] == 2
    await cordon(False, False)
    assert "cordonedSince" not in world.card(0) | world.card(1)
    assert world.cluster.get(gpunode)["status"]["summary"]["cordoned"] == 0
