"""Pods from their admission by the kubelet to their limits: the plugin between a kubelet and an API server."""

import asyncio

import pytest

from tests.deviceplugin.conftest import World
from tests.strategies import container
from tests.vgpu.node.builders import SLICE_MIB, sidecar, uuid
from vgpu.domain import names
from vgpu.domain.asks.policy import MemoryPolicy
from vgpu.domain.formats import region
from vgpu.domain.formats.limits import CardLimit

GIB = 1 << 30


async def test_a_pod_gets_its_card_its_limits_and_a_fresh_region(world: World) -> None:
    pod = await world.run("p", container(gpu_mem=1000, gpu_cores=30), gpus=1)
    assert world.cards_of(pod) == {uuid(1)}
    assert world.limits(pod).cards == (CardLimit(uuid(1), 1000 << 20, 30),)
    assert region.decode(world.kubelet.mount(pod, "/run/vgpu/region").read_bytes()).processes == ()
    envs = world.kubelet.responses[pod["metadata"]["uid"], "main"].envs
    assert envs == {"NVIDIA_VISIBLE_DEVICES": uuid(1)}


@pytest.mark.heavy
@pytest.mark.parametrize("policy", MemoryPolicy)
async def test_the_memory_policy_reaches_the_limits(world: World, policy: MemoryPolicy) -> None:
    pod = await world.run("p", container(gpu_mem=1000), annotations={names.MEMORY_POLICY: policy})
    assert world.limits(pod).memory_policy is policy


@pytest.mark.heavy
async def test_each_pod_of_a_burst_gets_its_own_limits(world: World) -> None:
    """Pods on alternating cards with different cores: admitted one after the other, then started all at once."""
    pods = [await world.create(f"p{n}", container(gpu_mem=SLICE_MIB, gpu_cores=n + 1), gpus=n % 2) for n in range(12)]
    for pod in reversed(pods):
        await world.kubelet.admit(pod)
    await asyncio.gather(*(world.kubelet.start_container(pod) for pod in pods))
    for n, pod in enumerate(pods):
        assert world.limits(pod).cards == (CardLimit(uuid(n % 2), SLICE_MIB << 20, n + 1),)
    assert len(world.kubelet.preferences) == 12
    assert world.kubelet.lists_in_flight == 0


async def test_a_pod_on_two_cards_has_half_of_its_total_on_each(world: World) -> None:
    pod = await world.run("p", container(gpu_mem=2048, gpu=2, gpu_cores=100), gpus={"main": (0, 1)})
    assert world.limits(pod).cards == tuple(CardLimit(uuid(n), GIB, 50) for n in range(2))


async def test_a_whole_card_and_its_slices_exclude_each_other(world: World) -> None:
    """PreStartContainer refuses the second pod; the devices offered to the kubelet do not change (docs/adr/0008)."""
    whole = await world.run("whole", container(gpu=1), gpus=0)
    assert world.limits(whole).cards == (CardLimit(uuid(0), None),)
    share = await world.create("share", gpus=0)
    await world.kubelet.admit(share)
    assert "CardHeldWhole" in await world.refusal(share)
    await world.run("other", gpus=1)
    second = await world.create("second", container(gpu=1), gpus=1)
    await world.kubelet.admit(second)
    assert "CardInUse" in await world.refusal(second)
    clients = world.kubelet.clients
    assert (len(clients[names.SLICE].healthy), len(clients[names.CARD].healthy)) == (16, 2)
    await world.end(whole)
    await world.until(lambda: world.can_start(share))


async def test_init_containers_sidecars_and_two_containers_each_get_their_limits(world: World) -> None:
    pod = await world.run(
        "p",
        container("one", gpu_mem=512, gpu_cores=20),
        container("two", gpu_mem=300),
        init=(sidecar("side", gpu_mem=256), container("init", gpu_mem=700)),
    )
    limit_of = {name: world.limits(pod, name).cards[0] for name in ("init", "side", "one", "two")}
    assert {name: limit.memory_bytes // (1 << 20) for name, limit in limit_of.items() if limit.memory_bytes} == {
        "init": 700,
        "side": 256,
        "one": 512,
        "two": 300,
    }
    assert {name: limit.cores for name, limit in limit_of.items()} == {"init": 0, "side": 0, "one": 20, "two": 0}


async def test_a_pod_whose_init_containers_alone_have_shares_runs(world: World) -> None:
    pod = await world.run("p", {"name": "main"}, init=(container("a", gpu_mem=512), container("b", gpu_mem=300)))
    assert world.limits(pod, "a").cards == (CardLimit(uuid(0), 512 << 20, 0),)
    assert world.limits(pod, "b").cards == (CardLimit(uuid(0), 300 << 20, 0),)
    await world.until(lambda: _holds_slices(world, 2))


async def test_a_restarted_container_gets_a_fresh_region(world: World) -> None:
    pod = await world.run("p")
    path = world.kubelet.mount(pod, "/run/vgpu/region")
    path.write_bytes(b"x" * region.SIZE)
    await world.kubelet.start_container(pod)
    assert region.decode(path.read_bytes()).cards == ()


@pytest.mark.heavy
async def test_a_pod_that_takes_all_free_devices_is_identified_at_its_start(world: World) -> None:
    """The kubelet does not call GetPreferredAllocation for it; PreStartContainer finds the holder by List."""
    world.driver.cards.pop()
    await world.stop_plugin()
    world.start_plugin()
    await world.until_registered()
    pod = await world.run("p", container(gpu_mem=2048))
    assert world.kubelet.preferences == []
    assert world.limits(pod).cards == (CardLimit(uuid(0), 2 * GIB, 0),)


async def test_a_kubelet_without_get_is_supported(world: World) -> None:
    world.kubelet.gets_fail = True
    pod = await world.run("p")
    assert world.limits(pod).cards[0].gpu == uuid(0)


async def test_a_pod_that_the_watch_has_not_shown_yet_is_fetched(world: World) -> None:
    first = await world.create("p", gpus=1)
    await world.kubelet.admit(first)
    await world.kubelet.start_container(first)
    assert world.limits(first).cards[0].gpu == uuid(1)


async def test_a_recreated_pod_of_the_same_name_gets_its_own_limits(world: World) -> None:
    old = await world.run("p", container(gpu_mem=1024, gpu_cores=10))
    await world.end(old)
    new = await world.create("p", container(gpu_mem=1000, gpu_cores=20), uid="another")
    await world.kubelet.admit(new)
    await world.kubelet.start_container(new)
    assert world.limits(new).cards == (CardLimit(uuid(0), 1000 << 20, 20),)
    assert world.limits(old).cards == (CardLimit(uuid(0), 1024 << 20, 10),)


async def _holds_slices(world: World, number: int) -> bool:
    return [card["heldSlices"] for card in await world.cards()] == [number, 0]
