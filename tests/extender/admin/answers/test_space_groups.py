"""Groups in space in the rows of pods and cards."""

from collections.abc import Mapping
from typing import Any

from extender.admin.answers.listed import space_groups
from extender.admin.security import visibility
from tests.extender.admin.conftest import Admin, CopiedSnapshots, shown
from vgpu.domain import names
from vgpu.domain.identifiers import CardUuid, NodeName


async def placed(admin: Admin, annotations: Mapping[str, str], cores: int = 10) -> dict[str, Any]:
    """Create a pod with these annotations, bind it to n1, and return its row."""
    pod = await admin.world.create_pod(metadata={"annotations": dict(annotations)}, gpu_mem=256, gpu_cores=cores)
    assert await admin.world.bind(pod, "n1") == ""
    await admin.world.until_bound_is_watched(pod)
    await admin.fresh()
    row: dict[str, Any] = await admin.get(f"/pods/default/{pod['metadata']['name']}")
    return row


async def test_a_card_lists_its_groups_with_what_their_members_have_together(admin: Admin) -> None:
    await admin.world.serve_space("n1")
    models = {names.COMPUTE_POLICY: "space", names.SPACE_GROUP: "models"}
    rows = [await placed(admin, models, cores) for cores in (10, 15)]
    rows.append(await placed(admin, {}))
    assert [row["spaceGroup"] for row in rows] == ["default/models", "default/models", ""]
    assert [row["gpus"][0]["spaceGroup"] for row in rows] == ["default/models", "default/models", ""]
    (uuid,) = {row["gpus"][0]["uuid"] for row in rows[:2]}
    (group,) = (await admin.get(f"/gpus/{uuid}"))["spaceGroups"]
    assert group == {
        "spaceGroup": "default/models", "namespace": "default", "name": "models", "members": 2, "cores": 25,
        "memoryMiB": 512, "usedMiB": None, "usedCores": None, "usedAt": "",
    }  # fmt: skip
    others = [card for card in (await admin.get("/gpus"))["items"] if card["uuid"] != uuid]
    assert [card["spaceGroups"] for card in others] == [[]] * len(others)


async def test_groups_of_a_namespace_and_of_the_cluster_have_names_of_their_own(admin: Admin) -> None:
    await admin.world.serve_space("n1")
    own = await placed(admin, {names.COMPUTE_POLICY: "space"})
    shared = await placed(admin, {names.COMPUTE_POLICY: "space", names.SPACE_GROUP: "shared/models"})
    assert (own["spaceGroup"], shared["spaceGroup"]) == ("default", "*/models")
    cards = (await admin.get("/gpus"))["items"]
    assert sorted(group["spaceGroup"] for card in cards for group in card["spaceGroups"]) == ["*/models", "default"]


async def test_a_group_of_which_the_caller_sees_no_pod_is_not_listed(admin: Admin) -> None:
    await admin.world.serve_space("n1")
    row = await placed(admin, {names.COMPUTE_POLICY: "space"})
    snapshot = await CopiedSnapshots(shown(admin.world)).take()
    uuid = CardUuid(row["gpus"][0]["uuid"])
    assert [
        found["members"] for found in space_groups.on_card(NodeName("n1"), uuid, snapshot, visibility.sees_all)
    ] == [1]
    assert space_groups.on_card(NodeName("n1"), uuid, snapshot, lambda namespace: namespace != "default") == []
