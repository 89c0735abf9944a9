"""What may be cleaned away of the state directory."""

from dataclasses import replace

import pytest

from deviceplugin import garbage_collection
from deviceplugin.kubelet.messages import Listing
from tests.vgpu.node.builders import allocation, bound, slices
from vgpu import names

POD = bound("p")
ANY = allocation(slices(0, 1, 2), POD)
LISTED = {POD.key: {"main": {names.SLICE: slices(0, 2)}}}


@pytest.mark.parametrize(
    ("uids", "listings", "age", "gone"),
    [
        ([], [{}, {}], 601, True),
        ([], [{}, {}], 599, False),
        ([POD.uid], [{}, {}], 601, False),
        ([], [LISTED, {}], 601, False),
        ([], [{}, LISTED], 601, False),
        ([], [{("default", "another"): LISTED[POD.key]}] * 2, 601, True),
    ],
)
def test_only_what_is_surely_over_is_removed(uids: list[str], listings: list[Listing], age: float, gone: bool) -> None:
    assert garbage_collection.expired([ANY], uids, listings, 1000.0 + age) == ([ANY] if gone else [])


def test_what_nobody_is_known_for_goes_when_nobody_holds_it() -> None:
    unknown = replace(ANY, holder=None)
    other = {("default", "another"): LISTED[POD.key]}
    assert garbage_collection.expired([unknown], [], [{}, {}], 1700.0) == [unknown]
    assert garbage_collection.expired([unknown], [], [other, {}], 1700.0) == []
