"""What is held on the node's cards."""

from dataclasses import replace

from deviceplugin import occupancy
from tests.vgpu.node.builders import allocation, bound, slices, uuid
from vgpu import names
from vgpu.node.inventory import HeldDevices

POD = bound("p")
LISTED = {POD.key: {"main": {names.SLICE: slices(0, 2)}}}


def test_held_is_what_is_listed_and_what_living_pods_were_given() -> None:
    live, over = allocation(slices(1, 0), POD), allocation(slices(1, 1), bound("gone"), sequence=2)
    young = allocation(slices(1, 2), sequence=3)
    card = allocation(frozenset({uuid(2)}), POD, sequence=4, resource=names.CARD)
    every = [live, over, young, card]
    assert occupancy.held(LISTED, every, [POD], 1004.0) == HeldDevices(
        slices(0, 2) | slices(1, 0, 2), frozenset({uuid(2)})
    )
    assert occupancy.held({}, every, [replace(POD, is_terminal=True)], 1006.0) == HeldDevices()
