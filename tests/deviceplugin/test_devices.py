"""The device lists, and how IDs are read."""

from hypothesis import given
from hypothesis import strategies as st

from deviceplugin import devices
from deviceplugin.devices import DeviceLists
from tests.vgpu.node.builders import SLICE_MIB, gpu, slices, uuid
from vgpu import names
from vgpu.node import device_ids
from vgpu.node.inventory import HeldDevices, Inventory

GPUS = [gpu(n) for n in range(3)]


def test_ids_are_short_enough_and_the_last_partial_slice_counts() -> None:
    listed = devices.advertised(names.SLICE, [gpu(0, 143155)], SLICE_MIB, [])
    assert len(listed) == 560
    assert max(len(each.id) for each in listed) <= 63


def test_ids_sort_by_number() -> None:
    assert sorted(slices(0, 10, 9, 1), key=device_ids.order) == [f"{uuid(0)}::{n}" for n in (1, 9, 10)]
    assert device_ids.order("x::y") == ("x", -1)


@given(unhealthy=st.sets(st.integers(0, 2)))
def test_devices_have_the_health_of_their_card(unhealthy: set[int]) -> None:
    ill = {uuid(n) for n in unhealthy}
    listed = [each for name in names.KUBELET_RESOURCES for each in devices.advertised(name, GPUS, SLICE_MIB, ill)]
    assert len(listed) == 3 * 8 + 3
    assert all(each.healthy == (device_ids.gpu_of(each.id) not in ill) for each in listed)


def test_device_lists_change_with_cards_and_health_but_not_with_holders() -> None:
    inventory = Inventory(SLICE_MIB)
    lists = DeviceLists(inventory)
    assert lists.of(names.SLICE) == ()
    inventory.set_gpus((gpu(0),), {})
    healthy = lists.of(names.SLICE)
    assert len(healthy) == 8
    assert [each.id for each in lists.of(names.CARD)] == [uuid(0)]
    inventory.set_held(HeldDevices(slices(0, 1)))
    assert lists.of(names.SLICE) is healthy
    inventory.set_gpus((gpu(0),), {uuid(0): "GpuIsLost"})
    assert not any(each.healthy for each in lists.of(names.SLICE))
