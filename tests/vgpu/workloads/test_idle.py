"""Idle containers: what the annotations say, and when something is done."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vgpu.workloads import idle
from vgpu.workloads.idle import Action, Rule, Use, Verdict

M = 60 * 1_000_000_000
GRACE = 5 * M
AFTER, ACTION = "vgpu.io/idle-after", "vgpu.io/idle-action"
EVICT = Rule(30 * M, Action.EVICT)


@pytest.mark.parametrize(
    ("pod", "namespace", "wanted"),
    [
        ({}, {}, None),
        ({AFTER: "30m"}, {}, Rule(30 * M, Action.REPORT)),
        ({AFTER: "1h30m", ACTION: "evict"}, {}, Rule(90 * M, Action.EVICT)),
        ({}, {AFTER: "90s", ACTION: "cull"}, Rule(90 * M // 60, Action.CULL)),
        ({AFTER: "1h"}, {AFTER: "30m", ACTION: "scale-to-zero"}, Rule(60 * M, Action.SCALE_TO_ZERO)),
        ({AFTER: "never"}, {AFTER: "30m", ACTION: "evict"}, None),
        ({ACTION: "evict"}, {}, None),
    ],
)
def test_rules(pod: dict[str, str], namespace: dict[str, str], wanted: Rule | None) -> None:
    assert idle.rule(pod, namespace, "vgpu.io") == wanted


@pytest.mark.parametrize("after", ["", "30", "59s", "721h", "-5m", "1.5h", "30m ", "m", "٣m", "9" * 50])
def test_a_time_that_cannot_be_read(after: str) -> None:
    with pytest.raises(ValueError, match=r"vgpu\.io/idle-after: .* is not a time from 1m to 720h"):
        idle.rule({AFTER: after}, {}, "vgpu.io")


def test_an_unknown_action() -> None:
    with pytest.raises(ValueError, match=r"vgpu\.io/idle-action: 'kill' is none of report, evict, scale-to-zero, cull"):
        idle.rule({AFTER: "30m", ACTION: "kill"}, {}, "vgpu.io")


def test_a_notebook_is_warned_and_then_acted_on() -> None:
    """Idle since minute 10: a warning at minute 40, the action at minute 45."""
    use = Use(0, 10 * M)
    assert idle.decide(EVICT, use, 39 * M, GRACE) is Verdict.NOTHING
    assert idle.decide(EVICT, use, 40 * M, GRACE) is Verdict.WARN
    warned = Use(0, 10 * M, warned_ns=40 * M)
    assert idle.decide(EVICT, warned, 44 * M, GRACE) is Verdict.NOTHING
    assert idle.decide(EVICT, warned, 45 * M, GRACE) is Verdict.ACT


def test_a_kernel_after_the_warning_makes_it_void() -> None:
    used = Use(0, 41 * M, warned_ns=40 * M)
    assert idle.decide(EVICT, used, 45 * M, GRACE) is Verdict.NOTHING
    assert idle.decide(EVICT, used, 71 * M, GRACE) is Verdict.WARN


def test_a_trainer_that_waits_for_data_for_twenty_minutes() -> None:
    assert idle.decide(EVICT, Use(0, 100 * M), 120 * M, GRACE) is Verdict.NOTHING


@pytest.mark.parametrize(
    ("use", "verdict"),
    [
        (Use(0, None), Verdict.NOTHING),
        (Use(0, 10 * M, in_flight=True), Verdict.NOTHING),
        (Use(80 * M, 0), Verdict.NOTHING),
        (Use(0, 0), Verdict.WARN),
        (Use(0, 200 * M), Verdict.NOTHING),
    ],
)
def test_what_is_known_of_use(use: Use, verdict: Verdict) -> None:
    assert idle.decide(EVICT, use, 100 * M, GRACE) is verdict


def test_a_report_never_acts() -> None:
    assert idle.decide(Rule(30 * M, Action.REPORT), Use(0, 0, warned_ns=40 * M), 100 * M, GRACE) is Verdict.REPORT


times = st.integers(0, 200).map(lambda minutes: minutes * M)


@given(times, times, st.none() | times, times, st.booleans())
def test_no_action_without_a_warning_and_grace(
    started: int, kernel: int, warned: int | None, now: int, busy: bool
) -> None:
    use = Use(started, kernel, busy, warned)
    if idle.decide(EVICT, use, now, GRACE) is Verdict.ACT:
        assert warned is not None
        assert now - warned >= GRACE
        assert warned > max(started, kernel)
        assert now - max(started, kernel) >= EVICT.after_ns
        assert not busy
