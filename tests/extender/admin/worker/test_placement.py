"""Explanations, waiting pods and simulations, by the process that places pods."""

import asyncio
import re
from typing import Any

import pytest
from msgspec import structs

from extender.admin.exchange.snapshots import ClusterSnapshot
from extender.admin.problems import AdminProblem
from extender.admin.worker.placement_process import START_S, PlacementProcess
from extender.admin.worker.questions import Reasons
from tests import strategies
from tests.extender.admin.conftest import Admin
from vgpu.domain import names
from vgpu.placement.policies import DefaultPolicies

pytestmark = pytest.mark.heavy


def manifest(name: str = "new", **amounts: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"containers": [strategies.container(**amounts)]}}


async def fill(admin: Admin, *, leave_mib: int = 512) -> None:
    """Fill every card but the last one, which keeps some MiB."""
    for node in ("n1", "n2", "n3"):
        for card in range(2):
            rest = leave_mib if (node, card) == ("n3", 1) else 0
            pod = await admin.world.create_pod(gpu_mem=2048 - rest)
            assert await admin.world.bind(pod, node) == ""
            await admin.world.until_bound_is_watched(pod)
    await admin.fresh()


async def test_what_is_missing_in_the_cluster_is_advised(admin: Admin) -> None:
    """Nothing was advised to any of these pods."""
    said = {}
    asked: tuple[tuple[str, dict[str, str], dict[str, Any]], ...] = (
        ("alone", {names.GPU_AFFINITY: "app=none"}, {"gpu_mem": 256}),
        ("space", {names.COMPUTE_POLICY: "space"}, {"gpu_mem": 256}),
        ("nine", {}, {"gpu": 9}),
        ("model", {names.USE_GPU_MODEL: "B200"}, {"gpu_mem": 256}),
    )
    for name, annotations, amounts in asked:
        pod = await admin.world.create_pod(metadata={"annotations": annotations}, **amounts)
        await admin.fresh()
        found = await admin.get(f"/pods/default/{pod['metadata']['name']}/explain")
        said[name] = [advice["text"].partition(":")[0] for advice in found["advice"]]
    assert said == {
        "alone": ["no pod with app=none holds a card"],
        "space": ["no card serves groups in space"],
        "nine": ["ask for 2 cards or fewer (vgpu.io/gpu"],
        "model": ["no card is of model b200; change vgpu.io/use-gpu-model"],
    }


async def test_three_pods_that_wait_have_three_explanations(admin: Admin) -> None:
    await fill(admin)
    full = await admin.world.create_pod(gpu_mem=1024)
    broken = await admin.world.create_pod(admitted=False, gpu_mem=256)
    large = await admin.world.create_pod(gpu_mem=4096)
    await admin.fresh()
    found = [await admin.get(f"/pods/default/{pod['metadata']['name']}/explain") for pod in (full, broken, large)]
    assert [explanation["reasons"][0]["reason"] for explanation in found] == [
        "CardInsufficientMemory",
        "NotAdmitted",
        "CardTooSmall",
    ]
    assert found[0]["message"] == (
        "needs 1 GiB on 1 card; 3 nodes: no card has the GPU memory free (CardInsufficientMemory); nearest fit n3: "
        "card 1 lacks 512 MiB of memory (512 MiB free, 1 GiB asked for)"
    )
    assert found[0]["nearest"]["wouldHelp"] == ["default/pod-6"]
    assert [advice["code"] for advice in found[0]["advice"]] == ["ask-for-less-memory"]
    assert "the webhook has not changed this pod" in found[1]["message"]
    assert "vgpu readmit -n default" in found[1]["advice"][0]["text"]
    assert [advice["code"] for advice in found[2]["advice"]] == ["ask-for-less-memory", "use-several-cards"]
    assert found[2]["advice"][1]["text"].endswith("no node has 2 cards with as much free now")
    cards = [card for node in found[0]["nodes"] for card in node["cards"]]
    assert len(cards) == 6
    assert {card["reason"] for card in cards} == {"CardInsufficientMemory"}
    waiting = (await admin.get("/pending", fields="name,message"))["items"]
    assert [row["name"] for row in waiting] == [pod["metadata"]["name"] for pod in (full, broken, large)]
    assert waiting[0]["message"] == found[0]["message"]


async def test_a_waiting_pod_has_the_last_decision_and_since_when_it_waits(admin: Admin) -> None:
    await fill(admin)
    pod = await admin.world.create_pod(gpu_mem=1024)
    await admin.fresh()
    name = pod["metadata"]["name"]
    before = await admin.get(f"/pods/default/{name}/explain")
    assert (before["waitsSince"][:4].isdigit(), before["lastDecision"]) == (True, None)
    for _ in range(3):
        await admin.world.filter(pod, "n1", "n2")
    await admin.fresh()
    last = (await admin.get(f"/pods/default/{name}/explain"))["lastDecision"]
    assert (last["attempts"], [(reason["reason"], reason["nodes"]) for reason in last["reasons"]]) == (
        3, [("CardInsufficientMemory", 2)],
    )  # fmt: skip
    (waiting,) = (await admin.get("/pending"))["items"]
    assert (waiting["lastDecision"], waiting["waitsSince"]) == (last, before["waitsSince"])
    bound = await admin.get("/pods/default/pod-1/explain")
    assert (bound["waitsSince"], bound["lastDecision"]) == ("", None)


async def test_affinity_to_pods_on_cards_is_explained_and_simulated(admin: Admin) -> None:
    labelled = await admin.world.create_pod(metadata={"labels": {"app": "server"}}, gpu_mem=512)
    assert await admin.world.bind(labelled, "n2") == ""
    await admin.world.until_bound_is_watched(labelled)
    annotations = {names.GPU_AFFINITY: "app=none"}
    await admin.world.create_pod(metadata={"name": "waits", "annotations": annotations}, gpu_mem=256)
    await admin.fresh()
    found = await admin.get("/pods/default/waits/explain")
    assert [(reason["reason"], reason["nodes"]) for reason in found["reasons"]] == [("CardAffinity", 3)]
    assert found["nodes"][0]["cards"][0]["detail"] == "no pod on it has the labels of the pod's gpu-affinity"
    (waiting,) = (await admin.get("/pending"))["items"]
    assert waiting["reasons"] == found["reasons"]
    client = manifest("client", gpu_mem=256)
    client["metadata"]["annotations"] = {names.GPU_AFFINITY: "app=server"}
    simulated = await admin.post("/simulate", {"pods": [{"pod": client}]})
    assert [pod["node"] for pod in simulated["pods"]] == ["n2"]
    client["metadata"]["namespace"] = "other"
    assert (await admin.post("/simulate", {"pods": [{"pod": client}]}))["notPlaced"] == 1


async def test_of_a_pod_that_has_ended_it_is_said_where_it_was(admin: Admin) -> None:
    pod = await admin.world.create_pod(gpu_mem=256)
    assert await admin.world.bind(pod, "n1") == ""
    await admin.world.until_bound_is_watched(pod)
    known = admin.world.cluster.objects.pods[pod["metadata"]["uid"]]
    admin.world.cluster.updates.upsert_pod(structs.replace(known, is_terminal=True, version=1 << 40))
    await admin.fresh()
    found = await admin.get(f"/pods/default/{pod['metadata']['name']}/explain")
    assert (found["message"], found["fits"]) == ("the pod was on node n1, and has ended", False)


async def test_an_explanation_shows_a_part_of_the_nodes(admin: Admin) -> None:
    pod = await admin.world.create_pod(gpu_mem=1024)
    await admin.fresh()
    found = await admin.get(f"/pods/default/{pod['metadata']['name']}/explain", nodes=1)
    assert (found["fits"], found["nodesThatFit"], len(found["nodes"]), found["nodesLeftOut"]) == (True, 3, 1, 2)
    assert found["message"].endswith("a node has room now, and the scheduler has not tried the pod yet")


async def test_a_simulation_lands_where_the_verbs_would_place_and_changes_nothing(admin: Admin) -> None:
    asked = [
        {"pod": manifest("a", gpu_mem=1536), "count": 2},
        {"pod": manifest("b", gpu=1)},
        {"pod": manifest("c", gpu_mem=9999)},
    ]
    found = await admin.post("/simulate", {"pods": asked})
    assert (found["placed"], found["notPlaced"]) == (3, 1)
    assert [(row["name"], row["number"], bool(row["node"])) for row in found["pods"]] == [
        ("a", 1, True), ("a", 2, True), ("b", 1, True), ("c", 1, False),
    ]  # fmt: skip
    assert found["pods"][3]["reasons"][0]["reason"] == "CardTooSmall"
    pod = await admin.world.create_pod(gpu_mem=1536)
    scores = {score["Host"]: score["Score"] for score in await admin.world.prioritize(pod, "n1", "n2", "n3")}
    assert scores[found["pods"][0]["node"]] == 10
    assert admin.world.used_slices("n1") == [0, 0]


async def test_a_gang_is_simulated_as_a_whole(admin: Admin) -> None:
    gang = {names.GANG: "train", names.GANG_SIZE: "4"}
    pod = manifest("train", gpu=1)
    pod["metadata"]["annotations"] = gang
    found = await admin.post("/simulate", {"pods": [{"pod": pod, "count": 4}]})
    assert (found["placed"], found["notPlaced"]) == (4, 0)
    assert found["pods"][0]["gang"] == {"name": "default/train", "size": 4, "fit": 4}
    for card in ("GPU-n1-0", "GPU-n2-0", "GPU-n3-0"):
        other = await admin.world.create_pod(metadata={"annotations": {names.USE_GPU_UUID: card}}, gpu_mem=256)
        assert not await admin.world.bind(other, card[4:6])
        await admin.world.until_bound_is_watched(other)
    await admin.fresh()
    found = await admin.post("/simulate", {"pods": [{"pod": pod, "count": 4}]})
    assert (found["placed"], found["notPlaced"]) == (0, 4)
    assert found["pods"][0]["gang"]["fit"] == 3
    assert found["pods"][0]["reasons"][0]["reason"] == "GangInsufficientCards"


async def test_foreign_names_are_translated_and_wrong_fields_are_named(admin: Admin) -> None:
    hami = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "512"}
    pod = {"spec": {"containers": [{"name": "main", "resources": {"limits": hami}}]}}
    assert (await admin.post("/simulate", {"pods": [{"pod": pod}]}))["pods"][0]["requested"] == "512 MiB"
    third = await admin.post("/simulate", {"pods": [{"pod": manifest(gpu_mem_percentage=33)}]})
    assert third["pods"][0]["requested"] == "512 MiB"  # of 2048: two of eight slices
    wrong = await admin.post("/simulate", {"pods": [{"pod": manifest(gpu_mem="16Gi")}]}, 422)
    (error,) = wrong["errors"]
    assert error["field"] == f"pods[0].pod.spec.containers[main].resources.limits[{names.GPU_MEM}]"
    for body, field in (
        ({"pods": []}, "pods"),
        ({"pods": [{"pod": {"spec": {"containers": "x"}}}]}, "pods[0].pod.spec.containers"),
        ({"pods": [{"pod": {}}]}, "pods[0].pod.spec.containers"),
        ({"pods": [{"pod": manifest(gpu_mem=256), "count": 1000}] * 2}, "pods"),
        ({"pods": [{"pod": {"metadata": {"name": 1 << 70}}}]}, "pods[0].pod.metadata.name"),
    ):
        assert (await admin.post("/simulate", body, 422))["errors"][0]["field"] == field
    answer = await admin.http.post(
        "/api/v1/simulate", content=b"[" * 100_000, headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == 400


async def test_a_name_that_the_api_server_would_refuse_is_refused(admin: Admin) -> None:
    schemas = (await admin.get("/openapi.json"))["components"]["schemas"]
    pattern = schemas["SimulatedEntrySchema"]["properties"]["pod"]["properties"]["metadata"]["properties"]["name"][
        "pattern"
    ]
    for name in ("train", "train-1.x", "x" * 253):
        await admin.post("/simulate", {"pods": [{"pod": named(name)}]})
        assert re.search(pattern, name)
    for name in ("A_b", "a..b", "-a", "a-", "a.", "a/b", "<b>", "x" * 254):
        (error,) = (await admin.post("/simulate", {"pods": [{"pod": named(name)}]}, 422))["errors"]
        assert error["field"] == "pods[0].pod.metadata.name"
        assert not re.search(pattern, name)


async def test_a_namespace_that_the_api_server_would_refuse_is_refused(admin: Admin) -> None:
    for name in ("A_b", "a.b", "-a", "a-", "a\n", "a/b", "x" * 64, "x" * 300):
        (error,) = (await admin.post("/simulate", {"pods": [{"pod": in_namespace(name)}]}, 422))["errors"]
        assert error["field"] == "pods[0].pod.metadata.namespace"
        assert error["detail"] == "must be a DNS label: at most 63 of a-z, 0-9 and -, such as team-a"
    schemas = (await admin.get("/openapi.json"))["components"]["schemas"]
    described = schemas["SimulatedEntrySchema"]["properties"]["pod"]["properties"]["metadata"]["properties"][
        "namespace"
    ]
    for name, is_valid in (("team-7", True), ("x" * 63, True), ("A_b", False), ("x" * 64, False)):
        assert bool(re.search(described["pattern"], name)) == is_valid
        await admin.post("/simulate", {"pods": [{"pod": in_namespace(name)}]}, 200 if is_valid else 422)


def in_namespace(name: str) -> dict[str, Any]:
    return with_metadata(namespace=name)


def named(name: str) -> dict[str, Any]:
    return with_metadata(name=name)


def with_metadata(**fields: str) -> dict[str, Any]:
    pod = manifest(gpu_mem=256)
    pod["metadata"].update(fields)
    return pod


async def test_a_question_that_takes_too_long_is_ended_and_the_next_one_is_answered() -> None:
    question = Reasons([], DefaultPolicies())
    slow = PlacementProcess(limit_s=0.0, grace_s=0.0)
    with pytest.raises(AdminProblem, match="the time for the answer is over"):
        await slow.ask(ClusterSnapshot(1), question, "me")
    slow._limit_s = 20
    assert await slow.ask(ClusterSnapshot(1), question, "me") == b"[]"
    await slow.close()


async def test_a_process_that_does_not_start_in_time_is_ended_and_started_again() -> None:
    process = PlacementProcess(start_s=0.001)
    with pytest.raises(AdminProblem, match="the time for the answer is over"):
        await process.ask(ClusterSnapshot(1), Reasons([], DefaultPolicies()), "me")
    process._start_s = START_S
    assert await process.ask(ClusterSnapshot(1), Reasons([], DefaultPolicies()), "me") == b"[]"
    await process.close()


async def test_a_process_that_was_killed_is_started_again() -> None:
    process = PlacementProcess()
    question = Reasons([], DefaultPolicies())
    assert await process.ask(ClusterSnapshot(1), question, "me") == b"[]"
    assert process._process is not None
    process._process.kill()
    await process._process.wait()
    assert await process.ask(ClusterSnapshot(1), question, "me") == b"[]"
    await process.close()


async def test_a_client_that_leaves_does_not_get_its_answer_to_the_next_one() -> None:
    process = PlacementProcess()
    left = asyncio.create_task(process.ask(ClusterSnapshot(1), Reasons([], DefaultPolicies()), "me"))
    await asyncio.sleep(0.01)
    left.cancel()
    with pytest.raises(asyncio.CancelledError):
        await left
    assert await process.ask(ClusterSnapshot(1), Reasons([], DefaultPolicies()), "me") == b"[]"
    await process.close()


async def test_one_callers_questions_do_not_keep_out_another_callers() -> None:
    process, question = PlacementProcess(), Reasons([], DefaultPolicies())
    async with asyncio.TaskGroup() as group:
        waiting = [group.create_task(process.ask(ClusterSnapshot(1), question, "me")) for _ in range(8)]
        await asyncio.sleep(0)
        with pytest.raises(AdminProblem, match="8 of your questions wait"):
            await process.ask(ClusterSnapshot(1), question, "me")
        assert await process.ask(ClusterSnapshot(1), question, "you") == b"[]"
        assert sum(task.done() for task in waiting) <= 2  # the one at work, and one that came between the turns
    assert [task.result() for task in waiting] == [b"[]"] * 8
    await process.close()


async def test_the_pods_of_a_gang_say_what_the_gang_waits_for(admin: Admin) -> None:
    world = admin.world
    gang = {names.GANG: "train", names.GANG_SIZE: "3"}
    pods = [await world.create_pod(metadata={"annotations": gang}, gpu_mem=4096, gpu=2) for _ in range(2)]
    path = f"/pods/default/{pods[0]['metadata']['name']}/explain"
    await admin.fresh()
    found = await admin.get(path)
    assert (
        found["message"]
        == "gang train of 3 pods: 2 exist; waits for 1 more pod of its namespace with vgpu.io/gang: train"
    )
    assert [reason["reason"] for reason in found["reasons"]] == ["GangIncomplete"]
    assert found["advice"][0]["text"] == "create the missing pods of the gang, or give it a smaller size"
    lone = await world.create_pod(gpu=2)
    assert await world.bind(lone) == ""
    pods.append(await world.create_pod(metadata={"annotations": gang}, gpu_mem=4096, gpu=2))
    assert (await world.filter(pods[0]))["NodeNames"] == []
    await admin.fresh()
    found = await admin.get(path)
    assert found["message"] == (
        "gang train of 3 pods: each pod needs 2 GiB on 2 cards; the free cards take 2 of the 3 pods that are not "
        "bound, so room for 1 more is missing; none starts before all can"
    )
    assert len(found["nodes"]) == 3
    waiting = (await admin.get("/pending", fields="name,message"))["items"]
    assert {row["message"] for row in waiting} == {found["message"]}


async def test_a_pod_that_is_none_of_ours_may_exist_all_the_same(admin: Admin) -> None:
    """A pod that asks NVIDIA's plugin was said not to exist."""
    detail = (await admin.get("/pods/default/other/explain", 404))["detail"]
    assert "does not exist, or asks for no GPU of vgpushare" in detail
    assert "nvidia.com/gpu alone is for NVIDIA's device plugin" in detail
