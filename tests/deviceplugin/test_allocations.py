"""Records that survive the plugin, and what may be cleaned away."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deviceplugin import allocations, cleaning, occupancy
from deviceplugin.allocations import Allocations, Holder
from deviceplugin.inventory import Held
from tests.deviceplugin.builders import allocation, bound, slices, uuid
from vgpu import names
from vgpu.errors import MalformedError

POD = bound("p")
ANY = allocation(slices(0, 1, 2), POD)


@pytest.fixture
def kept(tmp_path: Path) -> Allocations:
    return Allocations(tmp_path)


def test_records_survive(kept: Allocations) -> None:
    kept.add(ANY)
    kept.add(allocation(frozenset({uuid(1)}), sequence=2, resource=names.CARD))
    kept.settle(ANY, Holder.of(POD, "other"), proven=True)
    again = Allocations(kept.root)
    assert again.all() == kept.all()
    assert again.all()[0].holder == Holder.of(POD, "other")
    assert again.all()[0].is_proven
    assert again.next_sequence() == 3


def test_a_record_that_cannot_be_read_is_left_alone(kept: Allocations) -> None:
    kept.add(ANY)
    kept.root.joinpath("broken").mkdir()
    kept.root.joinpath("broken", "record.json").write_text("{")
    assert Allocations(kept.root).all() == (ANY,)


def test_chains_are_of_exactly_these_ids_newest_first(kept: Allocations) -> None:
    ids = slices(0, 1, 2)
    for sequence, chain, wanted in ((1, "old", ids), (2, "new", ids), (3, "new", ids), (4, "part", slices(0, 1))):
        kept.add(allocation(wanted, sequence=sequence, chain=chain))
    kept.add(allocation(ids, sequence=5, resource=names.CARD))
    assert [[each.sequence for each in chain] for chain in kept.chains(names.SLICE, ids)] == [[2, 3], [1]]
    assert [each.sequence for each in kept.overlapping(names.SLICE, slices(0, 1))] == [1, 2, 3, 4]
    assert kept.chains(names.SLICE, slices(0, 7)) == ()


def test_init_containers_are_remembered_by_the_pods_uid(kept: Allocations) -> None:
    kept.add(ANY)
    assert kept.was_given(POD.uid, "main")
    assert not kept.was_given("another", "main")
    assert not kept.was_given(POD.uid, "other")


@given(
    st.one_of(
        st.binary(max_size=60), st.recursive(st.none() | st.integers() | st.text(), st.lists).map(repr).map(str.encode)
    )
)
def test_foreign_bytes_are_malformed_and_nothing_worse(data: bytes) -> None:
    with pytest.raises(MalformedError):
        allocations.decode(data)


@pytest.mark.parametrize("text", [b'{"v":1}', b'{"v":2,"holder":null}', b"[]", b'{"v":1,"holder":{"uid":1},"ids":[]}'])
def test_other_json_is_malformed(text: bytes) -> None:
    with pytest.raises(MalformedError):
        allocations.decode(text)


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
def test_only_what_is_surely_over_is_removed(uids: list[str], listings: list[dict], age: float, gone: bool) -> None:  # type: ignore[type-arg]
    assert cleaning.expired([ANY], uids, listings, 1000.0 + age) == ([ANY] if gone else [])


def test_what_nobody_is_known_for_goes_when_nobody_holds_it() -> None:
    unknown = replace(ANY, holder=None)
    other = {("default", "another"): LISTED[POD.key]}
    assert cleaning.expired([unknown], [], [{}, {}], 1700.0) == [unknown]
    assert cleaning.expired([unknown], [], [other, {}], 1700.0) == []


def test_held_is_what_is_listed_and_what_living_pods_were_given() -> None:
    live, over = allocation(slices(1, 0), POD), allocation(slices(1, 1), bound("gone"), sequence=2)
    young = allocation(slices(1, 2), sequence=3)
    card = allocation(frozenset({uuid(2)}), POD, sequence=4, resource=names.CARD)
    every = [live, over, young, card]
    assert occupancy.held(LISTED, every, [POD], 1004.0) == Held(slices(0, 2) | slices(1, 0, 2), frozenset({uuid(2)}))
    assert occupancy.held({}, every, [replace(POD, is_over=True)], 1006.0) == Held()
