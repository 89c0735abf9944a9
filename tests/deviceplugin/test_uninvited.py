"""Processes that use a card without a share of it, as the plugin reports them in its GPUNode."""

from typing import Any

import msgspec
import pytest

from tests.deviceplugin.conftest import PODS, World, settings_of
from tests.strategies import container
from tests.vgpu.node.builders import NODE, gpu, uuid
from vgpu.adapters.procfs import HostProcess
from vgpu.domain import names
from vgpu.domain.json_types import JsonObject

ID, SIDE = "0123456789abcdef" * 4, "fedcba9876543210" * 4
REPLICA_SET = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "r", "controller": True}


async def plain_pod(world: World, name: str = "plain", **metadata: Any) -> JsonObject:
    """A running pod of this node that asks for no GPU."""
    spec = {"nodeName": NODE, "containers": [{"name": "main"}]}
    await world.client.post(PODS, {"metadata": {"name": name, **metadata}, "spec": spec})
    return await with_status(world, name, main=ID)


async def with_status(world: World, name: str, **containers: str) -> JsonObject:
    pod: JsonObject = msgspec.json.decode(await world.client.get(f"{PODS}/{name}"))
    listed = [
        {"name": name, "containerID": f"containerd://{container_id}"} for name, container_id in containers.items()
    ]
    await world.set_status(pod, {"phase": "Running", "startTime": "2026-01-01T00:00:00Z", "containerStatuses": listed})
    return pod


def use(
    world: World, card: int, pod: JsonObject | None = None, pid: int = 4711, container: str = ID, **more: str
) -> None:
    """Let a process of a container, or of the host, use a card."""
    path = f"/kubepods/burstable/pod{pod['metadata']['uid']}/{container}" if pod else "/system.slice/x.service"
    world.processes[pid] = HostProcess(more.get("command", "python3"), f"0::{path}\n")
    world.driver.users.setdefault(uuid(card), set()).add(pid)


async def condition(world: World) -> JsonObject:
    listed = (await world.gpunode()).get("status", {}).get("conditions", [])
    return next((entry for entry in listed if entry["type"] == "NoUninvitedProcesses"), {})


async def reports(world: World) -> list[JsonObject]:
    found: list[JsonObject] = (await world.gpunode()).get("status", {}).get("refusals", [])
    return found


async def has_reports(world: World, *pods: str) -> bool:
    return [report["pod"] for report in await reports(world)] == [f"default/{name}" for name in pods]


async def has_condition(world: World, status: str) -> bool:
    return (await condition(world)).get("status") == status


async def looked_again(world: World) -> None:
    """Wait for two looks."""
    for _ in range(2):
        world.driver.asked = 0
        await world.until(lambda: world.driver.asked > 1)


async def assert_nothing_else_is_found(world: World) -> None:
    """Let one more process use a card: it alone is found."""
    use(world, 0, pid=99, command="marker")
    await world.until(lambda: has_condition(world, "False"))
    assert (await condition(world))["message"] == "card 0: host process 99 (marker)"
    assert await reports(world) == []


async def test_a_pod_without_a_share_is_reported_until_its_process_ends(world: World) -> None:
    await world.until(lambda: has_condition(world, "True"))
    pod = await plain_pod(world)
    use(world, 1, pod)
    await world.until(lambda: has_reports(world, "plain"))
    (report,) = await reports(world)
    assert (report["podUID"], report["reason"], report["evict"]) == (
        pod["metadata"]["uid"],
        "CardUsedWithoutShare",
        False,
    )
    assert f"card 1 ({uuid(1)}) is used by pod default/plain container main process 4711 (python3)" in report["message"]
    found = await condition(world)
    assert (found["status"], found["reason"]) == ("False", "CardUsedWithoutShare")
    assert found["message"] == "card 1: pod default/plain container main process 4711 (python3)"
    world.driver.users.clear()
    await world.until(lambda: has_reports(world))
    assert await has_condition(world, "True")


@pytest.mark.heavy
async def test_containers_with_a_share_are_not_reported_also_after_a_restart_of_the_plugin(world: World) -> None:
    pod = await world.run("p", container("main", gpu_mem=512), container("init-like", gpu_mem=512))
    await with_status(world, "p", **{"main": ID, "init-like": SIDE})
    use(world, 0, pod)
    use(world, 0, pod, pid=5, container=SIDE)
    use(world, 0, pod, pid=6, container="a" * 64)  # not in the status yet
    await looked_again(world)
    await world.stop_plugin()
    world.kubelet.lists_fail = True
    world.start_plugin()
    await world.until_registered()
    await assert_nothing_else_is_found(world)


async def test_a_whole_card_is_a_share(world: World) -> None:
    pod = await world.run("whole", container(gpu=1))
    await with_status(world, "whole", main=ID)
    use(world, 0, pod)
    await assert_nothing_else_is_found(world)


async def test_a_card_beside_the_own_one_and_a_container_beside_the_sharing_one_are_reported(world: World) -> None:
    pod = await world.run("p", container("main", gpu_mem=512))
    await with_status(world, "p", main=ID, side=SIDE)
    use(world, 0, pod)
    use(world, 1, pod, pid=5)
    use(world, 0, pod, pid=6, container=SIDE)
    await world.until(lambda: has_reports(world, "p"))
    (report,) = await reports(world)
    assert "card 1" in report["message"]
    assert "card 0" in report["message"]
    assert "container side process 6" in report["message"]
    assert "process 4711" not in report["message"]


async def test_the_setting_evict_asks_for_the_eviction_of_a_pod_with_a_controller(idle_world: World) -> None:
    idle_world.settings = settings_of(**{**idle_world.settings.model_dump(), "uninvited": "evict"})
    idle_world.start_plugin()
    await idle_world.until_registered()
    for pid, (name, owners) in enumerate({"alone": [], "owned": [REPLICA_SET]}.items(), 10):
        use(idle_world, 0, await plain_pod(idle_world, name, ownerReferences=owners), pid=pid)
    await idle_world.until(lambda: has_count(idle_world, 2))
    assert {report["pod"]: report["evict"] for report in await reports(idle_world)} == {
        "default/alone": False,
        "default/owned": True,
    }


async def has_count(world: World, count: int) -> bool:
    return len(await reports(world)) == count


async def test_host_processes_are_in_the_condition_except_nvidias_daemons(world: World) -> None:
    use(world, 0, command="nvidia-persiste")
    use(world, 0, pid=5, command="Xorg")
    await world.until(lambda: has_condition(world, "False"))
    assert (await condition(world))["message"] == "card 0: host process 5 (Xorg)"
    assert await reports(world) == []


async def test_a_card_that_does_not_answer_keeps_its_findings(world: World) -> None:
    use(world, 0, await plain_pod(world))
    await world.until(lambda: has_reports(world, "plain"))
    world.driver.silent.add(uuid(0))
    world.driver.users.clear()
    await looked_again(world)
    assert await has_reports(world, "plain")
    world.driver.silent.clear()
    await world.until(lambda: has_reports(world))


async def test_what_cannot_be_seen_is_unknown(world: World) -> None:
    world.driver.silent.add(uuid(1))
    await world.until(lambda: has_condition(world, "Unknown"))
    world.driver.silent.clear()
    await world.until(lambda: has_condition(world, "True"))
    world.processes[1] = HostProcess(
        "python", f"0::/kubepods.slice/kubepods-pod{ID[:32]}.slice/cri-containerd-{ID}.scope\n"
    )
    await world.until(lambda: has_condition(world, "Unknown"))
    assert (await condition(world))["reason"] == "NoHostPID"


async def test_cards_divided_by_mig_are_not_looked_at(world: World) -> None:
    world.driver.cards = [gpu(0), gpu(1, mig=True)]
    await world.until(lambda: is_mig(world))
    use(world, 1, pid=5, command="Xorg")
    await assert_nothing_else_is_found(world)


async def is_mig(world: World) -> bool:
    return any(card["migEnabled"] for card in await world.cards())


async def test_a_crowd_of_pods_fills_no_more_of_the_status_than_its_schema_has(world: World) -> None:
    for number in range(40):
        use(world, 0, {"metadata": {"uid": f"{number:032x}"}}, pid=100 + number)
    use(world, 1, await plain_pod(world))
    await world.until(lambda: has_condition(world, "False"))
    await looked_again(world)
    message = (await condition(world))["message"]
    assert len(message) <= 512
    assert len(await reports(world)) <= 1
    assert (await condition(world))["reason"] == names.CARD_USED_WITHOUT_SHARE
