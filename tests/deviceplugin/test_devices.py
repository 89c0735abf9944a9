"""What is advertised, while cards are ill, held whole or shared."""

from hypothesis import given
from hypothesis import strategies as st

from deviceplugin import devices
from deviceplugin.devices import Held
from tests.deviceplugin.builders import SLICE_MIB, gpu, slices, uuid
from vgpu import names

GPUS = [gpu(n) for n in range(3)]


def healthy(resource: str, sick: set[str], held: Held) -> set[str]:
    listed = devices.advertised(resource, GPUS, SLICE_MIB, devices.closed(resource, sick, held))
    return {each.id for each in listed if each.healthy}


def test_ids_are_short_enough_and_the_last_partial_slice_counts() -> None:
    listed = devices.advertised(names.SLICE, [gpu(0, 143155)], SLICE_MIB, [])
    assert len(listed) == 560
    assert max(len(each.id) for each in listed) <= 63


def test_ids_sort_by_number() -> None:
    assert sorted(slices(0, 10, 9, 1), key=devices.order) == [f"{uuid(0)}::{n}" for n in (1, 9, 10)]
    assert devices.order("x::y") == ("x", -1)


@given(
    sick=st.sets(st.integers(0, 2)),
    shared=st.sets(st.tuples(st.integers(0, 2), st.integers(0, 7))),
    whole=st.sets(st.integers(0, 2)),
)
def test_health_follows_the_card_and_exclusion_never_touches_what_is_held(
    sick: set[int], shared: set[tuple[int, int]], whole: set[int]
) -> None:
    held = Held(frozenset().union(*(slices(*each) for each in shared)), frozenset(map(uuid, whole)))
    ill = {uuid(n) for n in sick}
    offered = healthy(names.SLICE, ill, held) | healthy(names.CARD, ill, held)
    well = {uuid(n) for n in range(3)} - ill
    assert {devices.gpu_of(each) for each in offered} == well
    assert {each for each in held.slices | held.cards if devices.gpu_of(each) in well} <= offered
    for card in well:
        used_slices, used_whole = held.slices_of(card) > 0, card in held.cards
        assert (card in offered) == (used_whole or not used_slices)
        assert (f"{card}::0" in offered) == (used_slices or not used_whole)
