"""Which devices of the node are held."""

from dataclasses import replace

from deviceplugin import occupancy
from tests.deviceplugin.plugin_parts import IDS, PluginParts
from tests.vgpu.node.builders import allocation, bound, mount_of, slices, uuid
from vgpu.domain import names
from vgpu.domain.cards.share import Usage
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


async def test_what_a_pod_deleted_by_force_uses_is_held_though_the_kubelet_lists_it_no_more(parts: PluginParts) -> None:
    pod, young = bound("p"), bound("young")
    parts.pods.upsert(pod)
    used = parts.allocate(IDS, pod, is_proven=True)
    parts.mountinfos = {7: mount_of(used.id)}
    parts.pods.delete(pod)
    await parts.departed.look()
    parts.occupancy.recount()
    assert parts.inventory.state.held == HeldDevices(IDS)
    (taken,) = [taken for taken in parts.occupancy.tenants(but=young.uid) if taken]
    assert taken == {uuid(0): Usage(slices=4, memory_mib=1024, shares=1)}
    parts.mountinfos = {}
    await parts.departed.look()
    parts.occupancy.recount()
    assert parts.inventory.state.held == HeldDevices()
    assert not any(parts.occupancy.tenants(but=young.uid))


async def test_a_holder_that_is_listed_and_recorded_is_counted_once(parts: PluginParts) -> None:
    pod = bound("p")
    parts.allocate(IDS, pod, is_proven=True)
    parts.set_holder(pod, IDS)
    await parts.list_once()
    (taken,) = [taken for taken in parts.occupancy.tenants(but=bound("young").uid) if taken]
    assert taken == {uuid(0): Usage(slices=4, memory_mib=1024, shares=1)}
