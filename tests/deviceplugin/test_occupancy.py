"""Which devices of the node are held."""

from dataclasses import replace

from deviceplugin import occupancy
from tests.deviceplugin.plugin_parts import IDS, PluginParts
from tests.vgpu.node.builders import allocation, bound, slices, uuid
from vgpu.domain import names
from vgpu.domain.identifiers import ContainerName
from vgpu.node.cards.inventory import HeldDevices

POD = bound("p")
LISTED = {POD.key: {ContainerName("main"): {names.SLICE: slices(0, 2)}}}


def test_listed_devices_and_allocations_of_living_pods_are_held() -> None:
    live, over = allocation(slices(1, 0), POD), allocation(slices(1, 1), bound("gone"), sequence=2)
    young = allocation(slices(1, 2), sequence=3)
    card = allocation(frozenset({uuid(2)}), POD, sequence=4, resource=names.CARD)
    every = [live, over, young, card]
    assert occupancy.held(LISTED, every, [POD], 1004.0) == HeldDevices(
        slices(0, 2) | slices(1, 0, 2), frozenset({uuid(2)})
    )
    assert occupancy.held({}, every, [replace(POD, is_terminal=True)], 1006.0) == HeldDevices()


async def test_the_devices_of_a_terminal_pod_are_free_before_the_next_list(parts: PluginParts) -> None:
    pod = bound("p")
    parts.pods.upsert(pod)
    parts.allocate(IDS, pod)
    parts.set_holder(pod, IDS)
    await parts.list_once()
    parts.occupancy.recount()
    assert parts.inventory.state.held == HeldDevices(IDS)
    parts.pods.upsert(replace(pod, is_terminal=True))
    parts.occupancy.recount()
    assert parts.inventory.state.held == HeldDevices()
    parts.pods.delete(replace(pod, is_terminal=True))
    parts.occupancy.recount()
    assert parts.inventory.state.held == HeldDevices()
    parts.pods.upsert(bound("p", uid="next"))
    parts.occupancy.recount()
    assert parts.inventory.state.held == HeldDevices(IDS), "a pod of the listed name runs"


def test_an_allocation_without_a_holder_of_a_clock_that_was_ahead_is_not_held() -> None:
    young = allocation(slices(1, 2))
    assert occupancy.held({}, [young], [], young.created - 1) == HeldDevices(slices(1, 2))
    assert occupancy.held({}, [young], [], young.created - 8_640_000) == HeldDevices()
