"""Which cards are unhealthy: XIDs, polls, recovery, and what an administrator acknowledges."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.vgpu.node.builders import uuid
from vgpu.adapters.nvml.records import Xid
from vgpu.node.cards import xids
from vgpu.node.cards.diagnosis import CardDiagnosis
from vgpu.node.cards.xids import Cause

A, B = uuid(0), uuid(1)
CLEAN = {A: "", B: ""}


def test_after_an_xid_a_card_is_unhealthy_until_its_quarantine_ends() -> None:
    diagnosis = CardDiagnosis(60)
    diagnosis.xid(Xid(A, 79), now=100)
    diagnosis.polled(CLEAN)
    assert diagnosis.faults(159) == {A: "Xid79"}
    assert diagnosis.faults(160) == {}


def test_another_xid_starts_the_quarantine_again() -> None:
    diagnosis = CardDiagnosis(60)
    diagnosis.xid(Xid(A, 48), now=100)
    diagnosis.xid(Xid(A, 79), now=150)
    diagnosis.polled(CLEAN)
    assert diagnosis.faults(205) == {A: "Xid79"}


@pytest.mark.parametrize("code", [code for code, meaning in xids.TABLE.items() if meaning.cause is not Cause.CARD])
def test_xids_of_applications_and_notices_mark_nothing(code: int) -> None:
    diagnosis = CardDiagnosis(60)
    diagnosis.xid(Xid(A, code), now=100)
    assert diagnosis.faults(101) == {}


def test_a_code_that_is_not_in_the_table_is_of_the_card() -> None:
    diagnosis = CardDiagnosis(60)
    diagnosis.xid(Xid(A, 999), now=100)
    assert diagnosis.faults(101) == {A: "Xid999"}


def test_an_xid_without_a_card_marks_none() -> None:
    diagnosis = CardDiagnosis(60)
    diagnosis.xid(Xid(None, 79), now=100)
    assert diagnosis.faults(101) == {}


def test_a_fault_of_nvml_ends_after_three_polls_without_it() -> None:
    diagnosis = CardDiagnosis(60, recovery_polls=3)
    diagnosis.polled({A: "GpuIsLost", B: ""})
    for _ in range(2):
        diagnosis.polled(CLEAN)
    assert diagnosis.faults(0) == {A: "GpuIsLost"}
    diagnosis.polled({A: "Unknown"})
    for _ in range(2):
        diagnosis.polled(CLEAN)
    assert diagnosis.faults(0) == {A: "Unknown"}
    diagnosis.polled(CLEAN)
    assert diagnosis.faults(0) == {}


def test_a_card_that_does_not_answer_after_its_quarantine_stays_unhealthy() -> None:
    diagnosis = CardDiagnosis(60, recovery_polls=2)
    diagnosis.xid(Xid(A, 79), now=0)
    diagnosis.polled(CLEAN)
    assert diagnosis.faults(61) == {A: "Xid79"}
    diagnosis.polled(CLEAN)
    assert diagnosis.faults(61) == {}


def test_an_acknowledged_fault_counts_again_when_it_changes() -> None:
    diagnosis = CardDiagnosis(60)
    diagnosis.polled({A: "UncorrectableEcc2"})
    diagnosis.acknowledge({A: "UncorrectableEcc2", B: "Xid48"})
    assert diagnosis.faults(0) == {}
    diagnosis.polled({A: "UncorrectableEcc3"})
    assert diagnosis.faults(0) == {A: "UncorrectableEcc3"}
    diagnosis.acknowledge({})
    assert diagnosis.faults(0) == {A: "UncorrectableEcc3"}


@pytest.mark.parametrize("fault", ["GpuIsLost", "NotAnswering", "LimiterUnusable", "NvmlFailed"])
def test_a_card_that_cannot_be_used_cannot_be_acknowledged(fault: str) -> None:
    diagnosis = CardDiagnosis(60)
    diagnosis.polled({A: fault})
    diagnosis.acknowledge({A: fault})
    assert diagnosis.faults(0) == {A: fault}


Steps = st.lists(st.tuples(st.sampled_from(["xid", "fault", "clean"]), st.integers(0, 30)), max_size=12)


@given(Steps, st.integers(1, 3))
def test_a_card_is_healthy_only_after_its_polls_and_its_quarantine_and_its_neighbour_always_is(
    steps: list[tuple[str, int]], polls: int
) -> None:
    diagnosis, now, clean, last_xid, is_ill = CardDiagnosis(20, polls), 0, 0, -100, False
    for kind, seconds in steps:
        now += seconds
        if kind == "xid":
            diagnosis.xid(Xid(A, 79), now)
            clean, last_xid, is_ill = 0, now, True
        else:
            diagnosis.polled({A: "GpuIsLost" if kind == "fault" else "", B: ""})
            clean, is_ill = (0, True) if kind == "fault" else (clean + 1, is_ill)
        is_ill = is_ill and (clean < polls or now - last_xid < 20)
        assert diagnosis.faults(now).keys() == ({A} if is_ill else set())


def test_a_fault_is_described_by_its_meaning() -> None:
    assert xids.describe("Xid79") == "Xid79 (the GPU has fallen off the bus)"
    assert xids.describe("Xid999") == "Xid999"
    assert xids.describe("GpuIsLost") == "GpuIsLost"
