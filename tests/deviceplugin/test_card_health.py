"""Unhealthy cards, as the plugin reports them: by card, with a reason, and with reports of the pods that hold them."""

from dataclasses import replace

import pytest

from tests.deviceplugin.conftest import World
from tests.deviceplugin.test_uninvited import reports
from tests.strategies import container
from tests.vgpu.node.builders import NODE, gpu, uuid
from vgpu.adapters.nvml.records import Xid
from vgpu.domain import names


async def reasons(world: World) -> list[str]:
    return [card["reason"] for card in await world.cards()]


async def has_reasons(world: World, *wanted: str) -> bool:
    return await reasons(world) == list(wanted)


@pytest.mark.heavy
async def test_an_xid_of_one_card_takes_only_this_card_and_tells_its_pods(world: World) -> None:
    await world.run("hit", container("main", gpu_mem=512))
    await world.run("beside", container("main", gpu_mem=512), gpus=1)
    world.driver.xids += [Xid(uuid(1), 13), Xid(uuid(0), 79)]
    await world.until(lambda: has_reasons(world, "Xid79", ""))
    await world.until(lambda: is_told(world, "hit"))
    (report,) = await reports(world)
    assert (report["reason"], report["evict"]) == ("CardUnhealthy", False)
    assert "card 0" in report["message"]
    assert "Xid79 (the GPU has fallen off the bus)" in report["message"]
    devices = world.kubelet.clients[names.SLICE].devices
    assert {device.partition("::")[0] for device, is_healthy in devices.items() if not is_healthy} == {uuid(0)}
    await world.until(lambda: has_reasons(world, "", ""))
    await world.until(lambda: is_told(world))


async def is_told(world: World, *pods: str) -> bool:
    return [report["pod"] for report in await reports(world)] == [f"default/{name}" for name in pods]


async def test_an_administrator_acknowledges_a_fault_in_the_spec(world: World) -> None:
    world.driver.ill[uuid(1)] = "UncorrectableEcc2"
    await world.until(lambda: has_reasons(world, "", "UncorrectableEcc2"))
    spec = {"cards": [{"uuid": uuid(1), "acknowledgedFault": "UncorrectableEcc2"}]}
    await world.client.patch(f"{names.GPUNODES_PATH}/{NODE}", {"spec": spec})
    await world.until(lambda: has_reasons(world, "", ""))
    world.driver.ill[uuid(1)] = "UncorrectableEcc3"
    await world.until(lambda: has_reasons(world, "", "UncorrectableEcc3"))


@pytest.mark.heavy
async def test_a_restarted_plugin_keeps_since_when_a_card_is_ill_and_conditions_are_as_they_are(world: World) -> None:
    world.driver.ill[uuid(1)] = "UncorrectableEcc2"
    await world.until(lambda: has_reasons(world, "", "UncorrectableEcc2"))
    long_ago, status = "2026-01-02T03:04:05Z", (await world.gpunode())["status"]
    assert "unhealthySince" in status["cards"][1]
    cards = [card | {"unhealthySince": long_ago} for card in status["cards"]]
    conditions = [condition | {"lastTransitionTime": long_ago} for condition in status["conditions"]]
    await world.stop_plugin()
    stored = {"status": {"cards": cards, "conditions": conditions, "pluginVersion": "before"}}
    await world.client.patch(f"{names.GPUNODES_PATH}/{NODE}/status", stored)
    world.start_plugin()

    async def is_written_and_ill() -> bool:
        now = (await world.gpunode())["status"]
        return now["pluginVersion"] != "before" and not now["cards"][1]["healthy"]

    await world.until(is_written_and_ill)
    now = (await world.gpunode())["status"]
    assert [card.get("unhealthySince") for card in now["cards"]] == [None, long_ago]
    times = {condition["type"]: condition["lastTransitionTime"] for condition in now["conditions"]}
    assert times["SettingsKnown"] == long_ago


async def test_a_card_that_another_plugin_offers_too_is_not_offered_here(world: World) -> None:
    await world.run("holds", container("main", gpu_mem=512))
    world.kubelet.others = {"nvidia.com/gpu": [uuid(0)], "example.com/nic": ["0"]}
    await world.until(lambda: has_reasons(world, "OfferedByAnotherPlugin", ""))
    await world.until(lambda: is_told(world, "holds"))
    (report,) = await reports(world)
    assert "pods that ask the other plugin get the card beside this pod" in report["message"]
    assert {device_id.partition("::")[0] for device_id in world.kubelet.clients[names.SLICE].healthy} == {uuid(1)}
    assert world.kubelet.clients[names.CARD].healthy == {uuid(1)}
    world.kubelet.others = {}
    await world.until(lambda: has_reasons(world, "", ""))


@pytest.mark.heavy
async def test_the_pods_of_a_replaced_card_are_told_and_the_new_card_has_its_index_alone(world: World) -> None:
    await world.run("held", container("main", gpu_mem=512))
    await world.run("beside", container("main", gpu_mem=512), gpus=1)
    fresh = replace(gpu(7).card, index=0)
    world.driver.cards[0] = replace(gpu(7), card=fresh)
    world.driver.ill[uuid(0)] = "NotFound"

    async def is_replaced() -> bool:
        return [(card["index"], card["uuid"]) for card in await world.cards()] == [(0, uuid(7)), (1, uuid(1))]

    await world.until(is_replaced)
    await world.until(lambda: is_told(world, "held"))
    (report,) = await reports(world)
    assert (report["reason"], report["evict"]) == ("CardUnhealthy", False)
    assert report["message"].startswith(f"card {uuid(0)} is lost: the driver of the node does not list it")
    assert (await world.gpunode())["status"]["summary"]["cards"] == 2
    assert {device_id.partition("::")[0] for device_id in world.kubelet.clients[names.SLICE].devices} == {
        uuid(7),
        uuid(1),
    }
    await world.stop_plugin()
    await world.client.patch(f"{names.GPUNODES_PATH}/{NODE}/status", {"status": {"refusals": []}})
    world.start_plugin()
    await world.until(lambda: is_told(world, "held"))


async def test_the_pods_that_share_a_card_are_told_when_it_takes_one_process_only(world: World) -> None:
    await world.run("shares", container("main", gpu_mem=512))
    await world.run("whole", container("main", gpu=1), gpus=1)
    world.driver.cards = [
        replace(known, card=replace(known.card, exclusive_process=True)) for known in world.driver.cards
    ]
    await world.until(lambda: is_told(world, "shares"))
    (report,) = await reports(world)
    assert report["reason"] == "CardUnhealthy"
    assert "compute mode EXCLUSIVE_PROCESS" in report["message"]
    assert "CUDA error 46" in report["message"]
    assert [card["exclusiveProcess"] for card in await world.cards()] == [True, True]
    assert await reasons(world) == ["", ""]
    late = await world.create("late", container("main", gpu_mem=512))
    await world.kubelet.admit(late)
    assert "CardExclusive" in await world.refusal(late)
