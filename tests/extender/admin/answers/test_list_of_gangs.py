"""The gang of a pod in its row, by which the pods of a job are listed with their cards."""

from typing import Any

import pytest

from extender.gangs import bind_gate
from tests.extender.admin.conftest import Admin
from vgpu.domain import names


@pytest.fixture(autouse=True)
def _short_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bind_gate, "WAIT_S", 0.05)


async def create(admin: Admin, gang: str, label: str = "") -> dict[str, Any]:
    metadata: dict[str, Any] = {"annotations": {names.GANG: gang, names.GANG_SIZE: "1"} if gang else {}}
    if label:
        metadata["labels"] = {names.POD_GROUP_LABEL: label}
    return await admin.world.create_pod(metadata=metadata, gpu_mem=256)


async def test_the_pods_of_a_gang_are_listed_with_their_cards(admin: Admin) -> None:
    made = [await create(admin, gang) for gang in ("train", "train", "other", "")]
    node = (await admin.world.filter(made[0]))["NodeNames"][0]
    assert await admin.world.bind(made[0], node) == ""
    await admin.world.until_bound_is_watched(made[0])
    await admin.fresh()
    rows = (await admin.get("/pods", gang="train", sort="name"))["items"]
    assert sorted(row["name"] for row in rows) == sorted(pod["metadata"]["name"] for pod in made[:2])
    assert {row["gang"] for row in rows} == {"train"}
    placed = {row["name"]: (row["node"], len(row["gpus"])) for row in rows}
    assert placed[made[0]["metadata"]["name"]] == (node, 1)
    assert placed[made[1]["metadata"]["name"]] == ("", 0)
    alone = await admin.get(f"/pods/default/{made[3]['metadata']['name']}")
    assert alone["gang"] == ""


async def test_a_pod_of_a_pod_group_has_its_name(admin: Admin) -> None:
    pod = await create(admin, "", label="ranks")
    await admin.fresh()
    assert (await admin.get(f"/pods/default/{pod['metadata']['name']}"))["gang"] == "ranks"
