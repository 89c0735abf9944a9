"""Cordon and uncordon: written to the GPUNode's spec, honoured by filter, recorded."""

import json
import logging
from typing import Any

import msgspec
import pytest

from extender.admin.problems import AdminProblem
from extender.admin.routes.card_settings import CardSettings
from tests.extender.admin.conftest import Admin
from vgpu.domain import names
from vgpu.domain.errors import KubernetesError
from vgpu.domain.identifiers import CardUuid, NodeName

N1 = NodeName("n1")


async def spec_of(admin: Admin, node: str) -> Any:
    return msgspec.json.decode(await admin.world.client.get(f"{names.GPUNODES_PATH}/{node}")).get("spec")


async def test_a_cordoned_card_gets_no_new_container(admin: Admin, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "extender.audit")
    other = {"uuid": "GPU-n1-1", "cordoned": False, "mode": "exclusive"}
    await admin.world.client.patch(f"{names.GPUNODES_PATH}/n1", {"spec": {"cards": [other]}})
    await admin.fresh()
    row = await admin.post("/gpus/GPU-n1-0/cordon")
    assert row["cordoned"] is True
    assert await spec_of(admin, "n1") == {"cards": [other, {"uuid": "GPU-n1-0", "cordoned": True}]}
    await admin.world.until(lambda: admin.world.cluster.states.of(N1).cards[0].card.cordoned)
    pod = await admin.world.create_pod(gpu_mem=256)
    assert "CardCordoned" in json.dumps(await admin.world.filter(pod, "n1"))
    await admin.fresh()
    assert [item["uuid"] for item in (await admin.get("/gpus", cordoned=True))["items"]] == ["GPU-n1-0"]
    await admin.post("/gpus/GPU-n1-0/cordon")
    await admin.post("/gpus/GPU-n1-0/uncordon")
    assert await spec_of(admin, "n1") == {"cards": [other, {"uuid": "GPU-n1-0", "cordoned": False}]}
    said = [(action.action, action.outcome, action.user, action.node) for action in admin.actions]
    assert said == [
        ("cordon", "done", "local", "n1"), ("cordon", "unchanged", "local", "n1"), ("uncordon", "done", "local", "n1"),
    ]  # fmt: skip
    assert '"action": "cordon"' in caplog.messages[0]


async def test_a_finding_says_since_when_a_card_is_cordoned(admin: Admin) -> None:
    """As the device plugin reports it; a time that is left over from an earlier cordon is not shown."""
    path, since = f"{names.GPUNODES_PATH}/n1", "2026-11-29T12:00:00Z"
    seen = msgspec.json.decode(await admin.world.client.get(path))
    cards = [card | {"cordonedSince": since} for card in seen["status"]["cards"]]
    await admin.world.client.patch(f"{path}/status", {"status": {"cards": cards}})
    await admin.post("/gpus/GPU-n1-0/cordon")
    await admin.world.until(lambda: admin.world.cluster.states.of(N1).cards[0].card.cordoned)
    await admin.fresh()
    found = (await admin.get("/summary"))["findings"]
    assert [row["since"] for row in found if row["reason"] == "CardCordoned"] == [since]
    await admin.post("/gpus/GPU-n1-0/uncordon")
    await admin.world.until(lambda: not admin.world.cluster.states.of(N1).cards[0].card.cordoned)
    assert not any(state.card.cordoned_since for state in admin.world.cluster.states.of(N1).cards)


async def test_a_finding_says_since_when_a_card_is_ill(admin: Admin) -> None:
    path, since = f"{names.GPUNODES_PATH}/n1", "2026-11-29T12:00:00Z"
    (first, *others) = msgspec.json.decode(await admin.world.client.get(path))["status"]["cards"]
    ill = first | {"healthy": False, "reason": "Xid79", "unhealthySince": since}
    well = [card | {"unhealthySince": since} for card in others]
    await admin.world.client.patch(f"{path}/status", {"status": {"cards": [ill, *well]}})
    await admin.world.until(lambda: not admin.world.cluster.states.of(N1).cards[0].card.healthy)
    await admin.fresh()
    found = (await admin.get("/summary"))["findings"]
    assert [(row["since"], row["detail"]) for row in found if row["reason"] == "CardUnhealthy"] == [(since, "Xid79")]
    assert [state.card.unhealthy_since for state in admin.world.cluster.states.of(N1).cards[1:]] == [""] * len(others)


async def test_a_card_that_does_not_exist_is_404_and_recorded(admin: Admin) -> None:
    await admin.post("/gpus/GPU-none/cordon", status=404)
    assert [action.action for action in admin.actions] == ["cordon"]


class Contested:
    """A GPUNode that another client changes at each of the first `times` writes."""

    def __init__(self, times: int) -> None:
        self.times = times
        self.version = 1
        self.cards: list[dict[str, Any]] = []

    async def get(self, path: str, params: Any = None, *, timeout: float) -> bytes:  # noqa: ARG002
        seen = {"metadata": {"resourceVersion": str(self.version)}, "spec": {"cards": self.cards}}
        return msgspec.json.encode(seen)

    async def patch(self, path: str, body: Any, *, timeout: float) -> bytes:  # noqa: ARG002
        if self.times:
            self.times -= 1
            self.version += 1
            self.cards = [*self.cards, {"uuid": f"other-{self.version}", "cordoned": True}]
        if body["metadata"]["resourceVersion"] != str(self.version):
            raise KubernetesError(409, "Conflict", "")
        self.cards = body["spec"]["cards"]
        return b""


async def test_a_concurrent_change_of_another_card_is_not_lost() -> None:
    node = Contested(2)
    assert await CardSettings(node).cordon(N1, CardUuid("mine"), cordoned=True)
    assert [card["uuid"] for card in node.cards] == ["other-2", "other-3", "mine"]


async def test_a_node_that_changes_all_the_time_is_a_conflict() -> None:
    with pytest.raises(AdminProblem, match="changes all the time"):
        await CardSettings(Contested(99)).cordon(N1, CardUuid("mine"), cordoned=True)
