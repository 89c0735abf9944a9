"""The device lists, and how IDs are read."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deviceplugin import devices
from deviceplugin.devices import DeviceLists
from deviceplugin.kubelet.api import deviceplugin_pb2 as api
from tests.vgpu.node.builders import SLICE_MIB, gpu, slices, uuid
from vgpu.domain import names
from vgpu.domain.errors import UnusableSetting
from vgpu.node.cards import device_ids
from vgpu.node.cards.inventory import HeldDevices, Inventory

GPUS = [gpu(n) for n in range(3)]


def test_ids_are_short_enough_and_the_last_partial_slice_counts() -> None:
    listed = devices.advertised(names.SLICE, [gpu(0, 143155)], SLICE_MIB, [])
    assert len(listed) == 560
    assert max(len(device.id) for device in listed) <= 63


@pytest.mark.heavy
@given(mib=st.lists(st.integers(1, 30_000), max_size=4), slice_mib=st.integers(1, 300))
def test_the_size_of_the_list_is_that_of_the_message(mib: list[int], slice_mib: int) -> None:
    gpus = [gpu(index, size) for index, size in enumerate(mib)]
    listed = devices.advertised(names.SLICE, gpus, slice_mib, {ill_gpu.card.uuid for ill_gpu in gpus})
    message = api.ListAndWatchResponse(devices=[api.Device(ID=device.id, health="Unhealthy") for device in listed])
    assert devices.list_bytes(gpus, slice_mib) == message.ByteSize()


def test_slices_that_make_the_list_too_long_are_refused_with_the_smallest_size_that_works() -> None:
    inventory = Inventory(1)
    inventory.set_gpus(tuple(gpu(index, 143155) for index in range(8)), {})
    with pytest.raises(UnusableSetting, match=r"--slice-mib 1 is too small.*Set it to (\d+) at least") as refused:
        devices.refuse_long_list(inventory)
    found = re.search(r"Set it to (\d+)", str(refused.value))
    assert found is not None
    smallest = int(found[1])
    assert devices.list_bytes(inventory.gpus(), smallest) <= devices.MAX_LIST_BYTES
    assert devices.list_bytes(inventory.gpus(), smallest - 1) > devices.MAX_LIST_BYTES
    inventory.slice_mib = 256
    devices.refuse_long_list(inventory)


def test_ids_sort_by_number() -> None:
    assert sorted(slices(0, 10, 9, 1), key=device_ids.order) == [f"{uuid(0)}::{n}" for n in (1, 9, 10)]
    assert device_ids.order("x::y") == ("x", -1)


@given(unhealthy=st.sets(st.integers(0, 2)))
def test_devices_have_the_health_of_their_card(unhealthy: set[int]) -> None:
    ill = {uuid(n) for n in unhealthy}
    listed = [device for name in names.KUBELET_RESOURCES for device in devices.advertised(name, GPUS, SLICE_MIB, ill)]
    assert len(listed) == 3 * 8 + 3
    assert all(device.healthy == (device_ids.gpu_of(device.id) not in ill) for device in listed)


def test_device_lists_change_with_cards_and_health_but_not_with_holders() -> None:
    inventory = Inventory(SLICE_MIB)
    lists = DeviceLists(inventory)
    assert lists.of(names.SLICE) == ()
    inventory.set_gpus((gpu(0),), {})
    healthy = lists.of(names.SLICE)
    assert len(healthy) == 8
    assert [device.id for device in lists.of(names.CARD)] == [uuid(0)]
    inventory.set_held(HeldDevices(slices(0, 1)))
    assert lists.of(names.SLICE) is healthy
    inventory.set_gpus((gpu(0),), {uuid(0): "GpuIsLost"})
    assert not any(device.healthy for device in lists.of(names.SLICE))
