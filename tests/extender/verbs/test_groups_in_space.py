"""Pods of groups in space through filter, prioritize and bind: where they may be, and that they attract each other."""

from collections.abc import Mapping
from typing import Any, Final

import pytest

from tests.extender.conftest import World
from vgpu.domain import names
from vgpu.domain.asks import space
from vgpu.domain.grants import assignment
from vgpu.domain.identifiers import ContainerName, NodeName

NOTHING: Final[Mapping[str, str]] = {}
NODES = (NodeName("n1"), NodeName("n2"), NodeName("n3"))


async def member(world: World, mem: int = 512, annotations: Mapping[str, str] = NOTHING) -> dict[str, Any]:
    named = {f"{names.DOMAIN}/{name}": value for name, value in annotations.items()}
    return await world.create_pod(metadata={"annotations": {names.COMPUTE_POLICY: "space"} | named}, gpu_mem=mem)


async def bind(world: World, pod: dict[str, Any], node: str) -> str:
    """Bind a pod, and return its card."""
    assert await world.bind(pod, node) == ""
    await world.until_bound_is_watched(pod)
    bound = await world.read(pod)
    decoded = assignment.decode(bound["metadata"]["annotations"][names.ASSIGNMENT])
    return decoded.containers[ContainerName("main")][0].gpu


async def best(world: World, pod: dict[str, Any]) -> str:
    fitting = (await world.filter(pod))["NodeNames"]
    scores = await world.prioritize(pod, *fitting)
    return str(max(scores, key=lambda scored: int(scored["Score"]))["Host"])


async def test_a_pod_of_a_group_waits_for_a_node_with_a_supervisor(world: World) -> None:
    pod = await member(world)
    answer = await world.filter(pod)
    assert answer["NodeNames"] == []
    (text,) = {*answer["FailedNodes"].values(), *answer["FailedAndUnresolvableNodes"].values()}
    assert text.startswith("CardWithoutSpace: no MPS daemons for groups in space")
    assert await world.bind(pod, "n1") != ""
    await world.serve_space("n2")
    assert (await world.filter(pod))["NodeNames"] == ["n2"]


@pytest.mark.parametrize("node", NODES)
async def test_members_go_where_their_group_is(world: World, node: str) -> None:
    await world.serve_space(*NODES)
    for other in NODES:
        await bind(world, await world.create_pod(gpu_mem=1024), other)  # the fullest card everywhere
    first = await bind(world, await member(world, 1536), node)
    second = await member(world)
    assert await best(world, second) == node
    assert await bind(world, second, node) == first
    stranger = await member(world, annotations={"space-group": "others"})
    assert await bind(world, stranger, node) != first


async def test_a_member_that_does_not_fit_beside_its_group_is_not_kept_waiting(world: World) -> None:
    await world.serve_space(*NODES)
    first = await bind(world, await member(world, 2048), "n1")
    assert await bind(world, await member(world, 1024), "n1") != first


async def test_a_group_has_48_containers_on_a_card(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(space, "MAX_CLIENTS", 2)
    await world.serve_space("n1")
    cards = [await bind(world, await member(world, 256), "n1") for _ in range(4)]
    assert len(set(cards)) == 2
    assert {cards.count(card) for card in cards} == {2}
    fifth = await member(world, 256)
    answer = await world.filter(fifth, "n1")
    (text,) = {*answer["FailedNodes"].values(), *answer["FailedAndUnresolvableNodes"].values()}
    assert text.startswith("CardSpaceGroupFull: ")
    other = await member(world, 256, annotations={"space-group": "others"})
    assert (await world.filter(other))["NodeNames"] == ["n1"]
