"""Which cards other device plugins of the node offer, by the IDs of their devices."""

import pytest

from tests.vgpu.node.builders import gpu, uuid
from vgpu.domain import names
from vgpu.node.cards import other_plugins

CARDS = [gpu(0).card, gpu(1).card, gpu(11).card]


@pytest.mark.parametrize(
    ("resource", "device", "hit"),
    [
        ("nvidia.com/gpu", uuid(1), [1]),
        ("nvidia.com/gpu", f"{uuid(1)}::3", [1]),  # a replica of time slicing
        ("nvidia.com/gpu.shared", f"{uuid(0)}::3", [0]),
        ("nvidia.com/gpu", "1", [1]),  # --device-id-strategy=index
        ("nvidia.com/gpu", "11::0", [11]),
        ("nvidia.com/gpu", "nvidia0", [0]),  # of Google's plugin
        ("nvidia.com/gpu", "nvidia1/vgpu0", [1]),
        ("nvidia.com/gpu", "card-x", [0, 1, 11]),  # an ID that cannot be read
        ("nvidia.com/gpu", uuid(7), []),  # a card that is not here
        ("nvidia.com/gpu", "7", []),
        ("nvidia.com/gpu", "MIG-1b2c", []),
        ("nvidia.com/mig-1g.10gb", "MIG-1b2c", []),
        ("nvidia.com/hostdev", "0000:3b:00.0", []),
        ("example.com/gpu-part", f"{uuid(0)}-0", [0]),
        ("example.com/nic", "1", []),
        (names.SLICE, f"{uuid(0)}::1", []),
        (names.CARD, uuid(0), []),
    ],
)
def test_the_cards_that_a_device_stands_for(resource: str, device: str, hit: list[int]) -> None:
    found = other_plugins.faults({resource: [device]}, CARDS)
    assert found == {uuid(number): other_plugins.FAULT for number in sorted(hit)}


def test_without_other_plugins_there_is_no_fault() -> None:
    assert other_plugins.faults({}, CARDS) == {}
