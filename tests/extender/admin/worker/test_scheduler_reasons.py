"""Pods that wait for something that kube-scheduler decides by itself: its words come first, and no node "fits"."""

from typing import Any

import pytest

from tests import strategies
from tests.extender.admin.conftest import Admin
from tests.extender.conftest import PODS
from vgpu.domain import names

pytestmark = pytest.mark.heavy

TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
TAINTED = "0/3 nodes are available: 3 node(s) had untolerated taint(s). preemption: 0/3 nodes are available."


async def create(admin: Admin, *, spec: dict[str, Any] | None = None, said: str = "", **metadata: Any) -> str:
    """Create a pod with more in its spec, which kube-scheduler has refused with these words."""
    name = f"pod-{next(admin.world.numbers)}"
    obj = strategies.admit(strategies.pod(strategies.container(gpu_mem=1024)))
    obj["metadata"] = {"name": name, "namespace": "default", **metadata}
    del obj["spec"]["nodeName"]
    obj["spec"] |= spec or {}
    await admin.world.client.post(PODS, obj)
    if said:
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": said}
        await admin.world.client.patch(f"{PODS}/{name}/status", {"status": {"conditions": [condition]}})
    known = admin.world.cluster.objects.pods
    await admin.world.until(lambda: any(pod.name == name and pod.scheduler_message == said for pod in known.values()))
    return name


async def change_node(admin: Admin, node: str, **changed: Any) -> None:
    await admin.world.client.patch(f"/api/v1/nodes/{node}", changed)
    await admin.world.until(lambda: _has(admin, node, changed))


def _has(admin: Admin, node: str, changed: dict[str, Any]) -> bool:
    marks = next(found.marks for name, found in admin.world.cluster.objects.nodes.items() if name == node)
    spec, labels = changed.get("spec", {}), changed.get("metadata", {}).get("labels", {})
    return (
        len(marks.taints) == len(spec.get("taints", marks.taints))
        and marks.is_unschedulable == spec.get("unschedulable", marks.is_unschedulable)
        and labels.items() <= marks.labels.items()
    )


async def taint_all(admin: Admin) -> None:
    for node in ("n1", "n2", "n3"):
        await change_node(admin, node, spec={"taints": [TAINT]})


async def explained(admin: Admin, name: str) -> Any:
    await admin.fresh()
    return await admin.get(f"/pods/default/{name}/explain")


def reasons_of(found: Any) -> list[tuple[str, int]]:
    return [(reason["reason"], reason["nodes"]) for reason in found["reasons"]]


async def test_taints_are_named_per_node_and_the_schedulers_words_come_first(admin: Admin) -> None:
    await taint_all(admin)
    name = await create(admin, said=TAINTED)
    found = await explained(admin, name)
    assert (found["fits"], found["nodesThatFit"], reasons_of(found)) == (False, 0, [("NodeTainted", 3)])
    assert found["message"].startswith("kube-scheduler: 0/3 nodes are available: 3 node(s) had untolerated taint(s); ")
    assert {node["reason"] for node in found["nodes"]} == {"NodeTainted"}
    assert "nvidia.com/gpu=present:NoSchedule" in found["nodes"][0]["detail"]
    assert [advice["code"] for advice in found["advice"]] == ["tolerate-taints"]
    (waiting,) = (await admin.get("/pending"))["items"]
    assert (waiting["message"], reasons_of(waiting)) == (found["message"], [("NodeTainted", 3)])


async def test_a_tolerated_taint_refuses_nothing(admin: Admin) -> None:
    await taint_all(admin)
    name = await create(admin, spec={"tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}]})
    found = await explained(admin, name)
    assert (found["nodesThatFit"], found["message"]) == (
        3, "needs 1 GiB on 1 card; a node has room now, and the scheduler has not tried the pod yet",
    )  # fmt: skip


async def test_a_selector_affinity_and_a_cordon_rule_nodes_out(admin: Admin) -> None:
    await change_node(admin, "n3", metadata={"labels": {"disk": "ssd"}}, spec={"unschedulable": True})
    name = await create(admin, spec={"nodeSelector": {"disk": "ssd"}})
    found = await explained(admin, name)
    assert sorted(reasons_of(found)) == [("NodeAffinityMismatch", 2), ("NodeUnschedulable", 1)]
    assert {advice["code"] for advice in found["advice"]} == {"uncordon-node", "accept-other-nodes"}
    field = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    tied = await create(admin, spec={"affinity": affinity})
    found = await explained(admin, tied)
    assert [(node["node"], node["fits"]) for node in found["nodes"]] == [("n1", True), ("n2", False), ("n3", False)]


async def test_what_cannot_be_judged_is_quoted_and_no_node_fits(admin: Admin) -> None:
    said = "0/3 nodes are available: 3 node(s) had volume node affinity conflict."
    name = await create(admin, said=said)
    found = await explained(admin, name)
    assert (found["fits"], reasons_of(found)) == (False, [("SchedulerRefused", 3)])
    assert found["message"].startswith(f"kube-scheduler: {said[:-1]}; ")
    assert found["nodes"][0]["detail"] == "kube-scheduler: 3 node(s) had volume node affinity conflict"
    (waiting,) = (await admin.get("/pending"))["items"]
    assert (waiting["message"], reasons_of(waiting)) == (found["message"], [("SchedulerRefused", 3)])


async def test_words_about_cards_are_not_quoted(admin: Admin) -> None:
    said = "0/4 nodes are available: 1 node(s) had untolerated taint(s), 3 CardInUse: whole cards are asked for."
    name = await create(admin, said=said)
    found = await explained(admin, name)
    assert found["message"] == "needs 1 GiB on 1 card; a node has room now, and the scheduler tries again soon"


async def test_an_amount_that_nothing_here_compares_is_quoted(admin: Admin) -> None:
    name = await create(admin, said="0/3 nodes are available: 3 Insufficient rdma/hca.")
    found = await explained(admin, name)
    assert (found["fits"], reasons_of(found)) == (False, [("SchedulerRefused", 3)])
    compared = await create(admin, said="0/3 nodes are available: 1 Insufficient cpu, 2 Insufficient vgpu.io/slice.")
    assert (await explained(admin, compared))["message"].endswith("the scheduler tries again soon")


async def test_a_gated_pod_waits_for_its_gates(admin: Admin) -> None:
    name = await create(admin, spec={"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]})
    found = await explained(admin, name)
    assert (found["fits"], found["reasons"][0]["reason"]) == (False, "SchedulingGated")


async def test_a_gangs_member_never_fits_while_its_gang_cannot_start(admin: Admin) -> None:
    gang = {names.GANG: "train", names.GANG_SIZE: "13"}  # of 12 halves of cards
    pods = [await create(admin, annotations=gang) for _ in range(13)]
    raw = await admin.world.read({"metadata": {"name": pods[0]}})
    await admin.world.filter(raw)
    found = await explained(admin, pods[0])
    assert (found["fits"], reasons_of(found)) == (False, [("GangInsufficientCards", 3)])
    assert {node["reason"] for node in found["nodes"]} == {"GangInsufficientCards"}
    assert "the free cards take 12 of the 13 pods that are not bound, so room for 1 more is missing" in found["message"]
    waiting = (await admin.get("/pending"))["items"]
    assert {reason["reason"] for row in waiting for reason in row["reasons"]} == {"GangInsufficientCards"}


async def test_a_gang_of_high_priority_says_that_it_evicts_nothing(admin: Admin) -> None:
    gang = {names.GANG: "train", names.GANG_SIZE: "13"}
    for priority, policy, says_so in (
        (1000, "PreemptLowerPriority", True),
        (1000, "Never", False),
        (0, "Never", False),
    ):
        spec = {"priority": priority, "preemptionPolicy": policy}
        pods = [await create(admin, annotations=gang, spec=spec) for _ in range(13)]
        await admin.world.filter(await admin.world.read({"metadata": {"name": pods[0]}}))
        found = await explained(admin, pods[0])
        assert ("a gang evicts no pod, also not one of lower priority" in found["message"]) == says_so
        for name in pods:
            await admin.world.client.delete(f"{PODS}/{name}", {"gracePeriodSeconds": 0})
        await admin.world.until(lambda: not admin.world.cluster.objects.pods)


async def test_a_gang_on_tainted_nodes_names_the_taint(admin: Admin) -> None:
    await taint_all(admin)
    gang = {names.GANG: "train", names.GANG_SIZE: "2"}
    pods = [await create(admin, annotations=gang, said=TAINTED) for _ in range(2)]
    found = await explained(admin, pods[0])
    assert reasons_of(found) == [("NodeTainted", 3)]
    assert found["message"].startswith("kube-scheduler: 0/3 nodes are available: 3 node(s) had untolerated taint(s); ")


async def test_a_simulated_pod_is_refused_as_the_scheduler_would(admin: Admin) -> None:
    await taint_all(admin)
    limits = {names.GPU_MEM: 1024}
    spec: dict[str, Any] = {"containers": [{"name": "m", "resources": {"limits": limits}}]}
    pod = {"metadata": {"name": "a"}, "spec": spec}
    found = await admin.post("/simulate", {"pods": [{"pod": pod}]})
    assert reasons_of(found["pods"][0]) == [("NodeTainted", 3)]
    spec["tolerations"] = [{"operator": "Exists"}]
    assert (await admin.post("/simulate", {"pods": [{"pod": pod}]}))["placed"] == 1


async def test_doctor_names_pods_that_room_on_cards_does_not_help(admin: Admin) -> None:
    """A taint on all nodes, and a volume; not a pod that the scheduler has not tried, or whom one node may take."""
    await taint_all(admin)
    volume = "0/3 nodes are available: 3 node(s) had volume node affinity conflict."
    tolerations = {"tolerations": [{"operator": "Exists"}]}
    tainted, bound = await create(admin, said=TAINTED), await create(admin, spec=tolerations, said=volume)
    await create(admin)
    await create(admin, spec=tolerations, said="0/3 nodes are available: 3 CardInUse: whole cards are asked for.")
    await admin.fresh()
    found = [row for row in (await admin.get("/summary"))["findings"] if row["about"].startswith("pod ")]
    assert {(row["about"], row["reason"], row["severity"]) for row in found} == {
        (f"pod default/{tainted}", "NodeTainted", "warning"),
        (f"pod default/{bound}", "SchedulerRefused", "warning"),
    }
    assert all(row["detail"].startswith("kube-scheduler: 0/3 nodes are available: 3 node(s) had ") for row in found)
    assert all(row["since"] for row in found)
