"""The guard: containers that run on a card never exceed its slices and cores, whatever the annotations say."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.vgpu.node.builders import SLICE_MIB, gpu, uuid
from vgpu.domain.cards.reasons import Reason
from vgpu.domain.cards.share import NO_USAGE, Usage
from vgpu.domain.grants import usage
from vgpu.domain.grants.usage import Usages
from vgpu.node.containers import guard
from vgpu.node.containers.refusal import NodeReason

GPUS = [gpu(0), gpu(1)]


def share(mib: int, cores: int = 0, spare: int = 0) -> Usage:
    """A share; `spare` slices are held beyond its memory, as after a larger init container."""
    return Usage(slices=-(-mib // SLICE_MIB) + spare, memory_mib=mib, cores=cores, shares=1)


WHOLE = Usage(slices=8, memory_mib=2048, cores=100, wholes=1)

usages = st.one_of(
    st.just(WHOLE),
    st.builds(
        share, st.sampled_from([1, 255, 256, 257, 1024, 1792, 2048, 2304]), st.integers(0, 100), st.integers(0, 3)
    ),
)
pods = st.dictionaries(st.sampled_from([uuid(0), uuid(1)]), usages, min_size=1)


@given(st.lists(pods, max_size=12))
def test_accepted_shares_always_fit_the_cards(arrivals: list[Usages]) -> None:
    running: list[Usages] = []
    for wanted in arrivals:
        if guard.check(GPUS, SLICE_MIB, running, wanted) is None:
            running.append(wanted)
    for taken in usage.total(running).values():
        assert taken.slices <= 8
        assert taken.memory_mib <= 2048
        assert taken.cores <= 100
        assert taken.wholes == 0 or (taken.wholes, taken.shares) == (1, 0)


@given(st.lists(pods, max_size=6), pods)
def test_a_share_that_fits_is_never_refused(arrivals: list[Usages], wanted: Usages) -> None:
    running = [arrival for arrival in arrivals if all(not need.wholes for need in arrival.values())]
    after = usage.total([*running, wanted])
    fits = all(
        after[card].slices <= 8
        and after[card].memory_mib <= 2048
        and (after[card].cores <= 100 or not need.cores)  # a share without percent fits beside any others
        and (not need.wholes or (after[card].wholes, after[card].shares) == (1, 0))
        for card, need in wanted.items()
    )
    assert (guard.check(GPUS, SLICE_MIB, running, wanted) is None) == fits


def reason(running: list[Usages], wanted: Usages) -> str:
    refusal = guard.check([gpu(0), gpu(1, mig=True)], SLICE_MIB, running, wanted)
    return refusal.reason if refusal else ""


def test_each_refusal_has_its_reason() -> None:
    a = uuid(0)
    assert reason([{a: share(1792)}], {a: share(512)}) == Reason.CARD_INSUFFICIENT_MEMORY
    assert reason([{a: share(256, 60)}], {a: share(256, 41)}) == Reason.CARD_INSUFFICIENT_CORES
    assert reason([{a: WHOLE}], {a: share(1)}) == Reason.CARD_HELD_WHOLE
    assert reason([{a: share(1)}], {a: WHOLE}) == Reason.CARD_IN_USE
    assert reason([], {uuid(1): share(1)}) == NodeReason.MIG_ENABLED
    assert reason([], {uuid(9): share(1)}) == NodeReason.CARD_MISMATCH
    assert reason([], {a: NO_USAGE}) == ""


def test_a_card_for_one_process_takes_whole_cards_only() -> None:
    one_process = [replace(card, card=replace(card.card, exclusive_process=True)) for card in GPUS]
    assert guard.check(one_process, SLICE_MIB, [], {uuid(0): WHOLE}) is None
    refusal = guard.check(one_process, SLICE_MIB, [], {uuid(0): share(256)})
    assert refusal is not None
    assert refusal.reason is Reason.CARD_EXCLUSIVE
    assert "EXCLUSIVE_PROCESS" in refusal.detail
