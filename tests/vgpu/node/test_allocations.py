"""Allocation records, which a restarted plugin reads again."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.vgpu.node.builders import allocation, bound, slices, uuid
from vgpu import names
from vgpu.errors import MalformedError
from vgpu.node import allocations
from vgpu.node.allocations import Allocations, Holder

POD = bound("p")
ANY = allocation(slices(0, 1, 2), POD)


@pytest.fixture
def kept(tmp_path: Path) -> Allocations:
    return Allocations(tmp_path)


def test_records_are_read_again(kept: Allocations) -> None:
    kept.add(ANY)
    kept.add(allocation(frozenset({uuid(1)}), sequence=2, resource=names.CARD))
    kept.set_holder(ANY, Holder.of(POD, "other"), proven=True)
    again = Allocations(kept.root)
    assert again.all() == kept.all()
    assert again.all()[0].holder == Holder.of(POD, "other")
    assert again.all()[0].is_proven
    assert again.next_sequence() == 3


def test_an_unreadable_record_is_not_changed(kept: Allocations) -> None:
    kept.add(ANY)
    kept.root.joinpath("broken").mkdir()
    kept.root.joinpath("broken", "record.json").write_text("{")
    assert Allocations(kept.root).all() == (ANY,)


def test_a_chain_has_the_allocations_of_exactly_these_ids_newest_first(kept: Allocations) -> None:
    ids = slices(0, 1, 2)
    for sequence, chain, wanted in ((1, "old", ids), (2, "new", ids), (3, "new", ids), (4, "part", slices(0, 1))):
        kept.add(allocation(wanted, sequence=sequence, chain=chain))
    kept.add(allocation(ids, sequence=5, resource=names.CARD))
    assert [[each.sequence for each in chain] for chain in kept.chains(names.SLICE, ids)] == [[2, 3], [1]]
    assert [each.sequence for each in kept.overlapping(names.SLICE, slices(0, 1))] == [1, 2, 3, 4]
    assert kept.chains(names.SLICE, slices(0, 7)) == ()


def test_init_containers_are_found_by_pod_uid(kept: Allocations) -> None:
    kept.add(ANY)
    assert kept.was_allocated(POD.uid, "main")
    assert not kept.was_allocated("another", "main")
    assert not kept.was_allocated(POD.uid, "other")


@given(
    st.one_of(
        st.binary(max_size=60), st.recursive(st.none() | st.integers() | st.text(), st.lists).map(repr).map(str.encode)
    )
)
def test_any_bytes_are_decoded_or_malformed(data: bytes) -> None:
    with pytest.raises(MalformedError):
        allocations.decode(data)


@pytest.mark.parametrize("text", [b'{"v":1}', b'{"v":2,"holder":null}', b"[]", b'{"v":1,"holder":{"uid":1},"ids":[]}'])
def test_other_json_is_malformed(text: bytes) -> None:
    with pytest.raises(MalformedError):
        allocations.decode(text)
