"""Simulations judge all pods as the verbs would: beside each other, in racks, and without those that are wrong."""

from typing import Any

import pytest

from extender.admin.answers import schemas
from tests import strategies
from tests.extender.admin.conftest import Admin
from vgpu.domain import names

pytestmark = pytest.mark.heavy


def manifest(name: str, /, annotations: dict[str, str] | None = None, **amounts: Any) -> dict[str, Any]:
    metadata = {"name": name, "labels": {"app": name}, "annotations": annotations or {}}
    return {"metadata": metadata, "spec": {"containers": [strategies.container(**amounts)]}}


async def simulated(admin: Admin, *entries: dict[str, Any]) -> Any:
    await admin.fresh()
    return await admin.post("/simulate", {"pods": list(entries)})


def cards_of(found: Any) -> list[str]:
    return [pod["gpus"][0]["uuid"] for pod in found["pods"]]


async def bind(admin: Admin, node: str, **pod: Any) -> dict[str, Any]:
    made = await admin.world.create_pod(**pod)
    assert not await admin.world.bind(made, node)
    await admin.world.until_bound_is_watched(made)
    return made


async def test_preferred_anti_affinity_lands_where_the_verbs_would_place(admin: Admin) -> None:
    """Simulations ignored the preference, and put every pod on the card that the policy packs first."""
    servers = {"labels": {"app": "server"}}
    for node, card in (("n1", 0), ("n1", 1), ("n2", 0), ("n3", 0), ("n3", 1)):
        on_card = {**servers, "annotations": {names.USE_GPU_UUID: f"GPU-{node}-{card}"}}
        await bind(admin, node, metadata=on_card, gpu_mem=512)
    avoids = {names.PREFERRED_GPU_ANTI_AFFINITY: "app=server"}
    found = await simulated(admin, {"pod": manifest("client", avoids, gpu_mem=512)})
    assert cards_of(found) == ["GPU-n2-1"]
    pod = await admin.world.create_pod(metadata={"annotations": avoids}, gpu_mem=512)
    scores = {score["Host"]: score["Score"] for score in await admin.world.prioritize(pod, "n1", "n2", "n3")}
    assert scores["n2"] == 10
    assert not await admin.world.bind(pod, "n2")
    assert "GPU-n2-1" in (await admin.world.read(pod))["metadata"]["annotations"][names.ASSIGNMENT]


async def test_simulated_pods_keep_apart_from_each_other(admin: Admin) -> None:
    apart = {names.GPU_ANTI_AFFINITY: "app=a"}
    found = await simulated(admin, {"pod": manifest("a", apart, gpu_mem=256), "count": 7})
    assert (found["placed"], found["notPlaced"]) == (6, 1)
    assert found["pods"][6]["reasons"][0]["reason"] == "CardAntiAffinity"
    rather = {names.PREFERRED_GPU_ANTI_AFFINITY: "app=a"}
    found = await simulated(admin, {"pod": manifest("a", rather, gpu_mem=256), "count": 7})
    assert (found["placed"], len(set(cards_of(found)))) == (7, 6)


async def test_the_pods_of_a_controller_obey_their_rack_policy(admin: Admin) -> None:
    racks = {"n1": "r1", "n2": "r2", "n3": "r2"}
    for node, rack in racks.items():
        await admin.world.client.patch(f"/api/v1/nodes/{node}", {"metadata": {"labels": {names.RACK: rack}}})
    nodes = admin.world.cluster.objects.nodes
    await admin.world.until(lambda: all(node.rack for node in nodes.values()))
    for policy, are_apart in (("spread", [True, True]), ("pack", [False, False])):
        found = await simulated(admin, {"pod": manifest("a", {names.RACK_POLICY: policy}, gpu=1), "count": 4})
        landed = [racks[pod["node"]] for pod in found["pods"]]
        assert [landed[0] != landed[1], landed[2] != landed[3]] == are_apart


async def test_as_many_manifests_as_pods_are_taken(admin: Admin) -> None:
    """Documents say 1,000 pods; from 257 manifests on, a simulation was refused."""
    entries = [{"pod": manifest(f"a{n}", gpu_mem=256)} for n in range(300)]
    found = await simulated(admin, *entries)
    assert (found["placed"], found["notPlaced"], schemas.MAX_SIMULATED) == (48, 252, 1000)


async def test_wrong_pods_are_named_and_the_others_are_placed(admin: Admin) -> None:
    found = await simulated(
        admin,
        {"pod": manifest("good", gpu_mem=256)},
        {"pod": manifest("bad", gpu_mem="16Gi"), "count": 2},
        {"pod": {"metadata": {"name": "A_b"}, "spec": {}}},
        {"pod": {"metadata": 5}},
        {"pod": manifest("good-2", gpu_mem=256)},
    )
    assert (found["placed"], found["notPlaced"]) == (2, 4)
    rows = [(row["name"], row["number"], bool(row["node"]), len(row["problems"])) for row in found["pods"]]
    assert rows == [
        ("good", 1, True, 0), ("bad", 1, False, 1), ("bad", 2, False, 1), ("A_b", 1, False, 1), ("pod", 1, False, 1),
        ("good-2", 1, True, 0),
    ]  # fmt: skip
    assert found["pods"][1]["problems"][0].startswith(
        "pods[1].pod.spec.containers[main].resources.limits[vgpu.io/gpu-mem]"
    )
    assert found["pods"][1]["reasons"][0]["reason"] == "InvalidRequest"


@pytest.mark.parametrize("count", [0, -1, 1001, 2.5, True, "2", None, [], 10**30])
async def test_a_wrong_count_is_named_and_the_others_are_placed(admin: Admin, count: object) -> None:
    found = await simulated(
        admin, {"pod": manifest("good", gpu_mem=256)}, {"pod": manifest("bad", gpu_mem=256), "count": count}
    )
    good, bad = found["pods"]
    assert (good["name"], good["problems"], bool(good["node"])) == ("good", [], True)
    assert (bad["name"], bad["node"]) == ("bad", "")
    assert bad["problems"] == ["pods[1].count: must be a whole number from 1 to 1000"]
    assert (found["placed"], found["notPlaced"]) == (1, 1)


async def test_counts_alone_that_are_wrong_are_refused_by_name(admin: Admin) -> None:
    wrong = {"pod": manifest("bad", gpu_mem=256), "count": "many"}
    refused = await admin.post("/simulate", {"pods": [wrong]}, status=422)
    assert refused["detail"] == "pods[0].count: must be a whole number from 1 to 1000"


async def test_a_pod_that_the_webhook_refuses_is_placed_nowhere(admin: Admin) -> None:
    """Only the translation was looked at: these pods were placed, and refused when they were created."""
    misspelt, idle, beside, pinned = (manifest(f"p{n}", gpu_mem=256) for n in range(4))
    misspelt["metadata"]["annotations"] = {f"{names.DOMAIN}/compute-polcy": "fixed"}
    idle["metadata"]["annotations"] = {names.IDLE_AFTER: "30"}
    beside["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = "1"
    pinned["spec"]["nodeName"] = "n1"
    wrong = (misspelt, idle, beside, pinned)
    found = await simulated(admin, {"pod": manifest("good", gpu_mem=256)}, *({"pod": pod} for pod in wrong))
    assert (found["placed"], found["notPlaced"]) == (1, 4)
    assert [row["problems"][0].partition(": ")[0] for row in found["pods"][1:]] == [
        f"pods[1].pod.metadata.annotations[{names.DOMAIN}/compute-polcy]",
        f"pods[2].pod.metadata.annotations[{names.IDLE_AFTER}]",
        "pods[3].pod.spec.containers[main].resources.limits[nvidia.com/gpu]",
        "pods[4].pod.spec.nodeName",
    ]


async def test_what_would_help_is_told_to_the_first_different_pods(admin: Admin) -> None:
    """Only an explanation said it, when the pod had been created."""
    sizes = [3000, 3000, 3001, 3002, 3003, 3004, 3005]
    entries = [{"pod": manifest(f"p{n}", gpu_mem=size)} for n, size in enumerate(sizes)]
    found = await simulated(admin, *entries, {"pod": manifest("good", gpu_mem=256)})
    codes = [[advice["code"] for advice in row["advice"]] for row in found["pods"]]
    assert codes[0] == codes[1] == ["ask-for-less-memory", "use-several-cards"]
    assert [bool(row) for row in codes] == [True, True, True, True, True, True, False, False]
    away = manifest("away", {names.GPU_AFFINITY: "app=none"}, gpu_mem=256)
    (row,) = (await simulated(admin, {"pod": away}))["pods"]
    assert [advice["code"] for advice in row["advice"]] == ["prefer-neighbours"]


async def test_what_is_no_request_or_cannot_be_created_is_told_with_what_to_write(admin: Admin) -> None:
    nvidias, requests, unequal, unquoted = (manifest(f"p{n}", gpu_mem=256) for n in range(4))
    nvidias["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": 1}}
    requests["spec"]["containers"][0]["resources"] = {"requests": {names.GPU_MEM: 256}}
    unequal["spec"]["containers"][0]["resources"]["requests"] = {names.GPU_MEM: 255}
    unquoted["metadata"]["annotations"] = {names.GANG: "g", names.GANG_SIZE: 8}
    wrong = (nvidias, requests, unequal, unquoted)
    found = await simulated(admin, {"pod": manifest("good", gpu_mem=256)}, *({"pod": pod} for pod in wrong))
    limits = "pod.spec.containers[main].resources"
    said = [problem for row in found["pods"][1:] for problem in row["problems"]]
    assert [line[:90] for line in said] == [
        line[:90]
        for line in (
            "pods[1].pod.spec.containers: asks NVIDIA's device plugin for cards (nvidia.com/gpu: 1), and vgpushare",
            f"pods[2].{limits}.limits[{names.GPU_MEM}]: must be set for vgpu.io's resources: write the amount here",
            f"pods[3].{limits}.requests[{names.GPU_MEM}]: must be equal to the limit of 256; leave it out",
            f'pods[4].pod.metadata.annotations[{names.GANG_SIZE}]: must be text: write "8"',
        )
    ]


async def test_a_copy_of_a_live_pod_is_placed(admin: Admin) -> None:
    """The webhook removes an assignment from a new pod, and so it is no problem here."""
    copy = manifest("copy", {names.ASSIGNMENT: "{}", names.AS_WRITTEN: "{}"}, gpu_mem=512, slice=2)
    found = await simulated(admin, {"pod": copy})
    assert (found["placed"], found["notPlaced"]) == (1, 0)
