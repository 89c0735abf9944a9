"""Idle pods: what the annotations say, and when something is done."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vgpu.domain.asks import idle
from vgpu.domain.asks.idle import IdleAction, IdlePodUse, IdleVerdict, Rule

M = 60 * 1_000_000_000
GRACE_S = 300
AFTER, ACTION = "vgpu.io/idle-after", "vgpu.io/idle-action"
EVICT = Rule(1800, IdleAction.EVICT)


def rule(pod: dict[str, str], namespace: dict[str, str]) -> Rule | None:
    return idle.rule(idle.read(pod)[0], idle.read(namespace)[0])


@pytest.mark.parametrize(
    ("pod", "namespace", "wanted"),
    [
        ({}, {}, None),
        ({AFTER: "30m"}, {}, Rule(1800, IdleAction.REPORT)),
        ({AFTER: "1h30m", ACTION: "evict"}, {}, Rule(5400, IdleAction.EVICT)),
        ({}, {AFTER: "90s", ACTION: "cull"}, Rule(90, IdleAction.CULL)),
        ({AFTER: "1h"}, {AFTER: "30m", ACTION: "scale-to-zero"}, Rule(3600, IdleAction.SCALE_TO_ZERO)),
        ({AFTER: "never"}, {AFTER: "30m", ACTION: "evict"}, None),
        ({ACTION: "evict"}, {}, None),
        ({ACTION: "evict"}, {AFTER: "30m"}, EVICT),
        ({AFTER: "Never"}, {AFTER: "30m", ACTION: "evict"}, None),
        ({AFTER: "1h", ACTION: "x"}, {}, None),
        ({}, {AFTER: "30m", ACTION: "kill"}, None),
        ({AFTER: "30m", ACTION: "evict"}, {AFTER: "soon"}, EVICT),
    ],
)
def test_rules(pod: dict[str, str], namespace: dict[str, str], wanted: Rule | None) -> None:
    assert rule(pod, namespace) == wanted


@pytest.mark.parametrize("after", ["", "30", "59s", "721h", "-5m", "1.5h", "30m ", "m", "٣m", "9" * 50, "x" * 250_000])
def test_a_time_that_cannot_be_read(after: str) -> None:
    setting, (problem,) = idle.read({AFTER: after})
    assert not setting.is_readable
    assert problem.field == "metadata.annotations[vgpu.io/idle-after]"
    assert "must be a time from 1m to 720h" in str(problem)
    assert len(str(problem)) < 500


def test_an_unknown_action() -> None:
    _, (problem,) = idle.read({AFTER: "30m", ACTION: "kill"})
    assert problem.field == "metadata.annotations[vgpu.io/idle-action]"
    assert "must be one of report, evict, scale-to-zero, cull" in str(problem)


def test_a_notebook_is_warned_and_then_acted_on() -> None:
    """Idle since minute 10: a warning at minute 40, the action at minute 45."""
    assert idle.decide(EVICT, IdlePodUse(10 * M), 39 * M, GRACE_S) is IdleVerdict.NOTHING
    assert idle.decide(EVICT, IdlePodUse(10 * M), 40 * M, GRACE_S) is IdleVerdict.WARN
    warned = IdlePodUse(10 * M, warned_ns=40 * M)
    assert idle.decide(EVICT, warned, 44 * M, GRACE_S) is IdleVerdict.NOTHING
    assert idle.decide(EVICT, warned, 45 * M, GRACE_S) is IdleVerdict.ACT


def test_a_kernel_after_the_warning_makes_it_void() -> None:
    used = IdlePodUse(41 * M, warned_ns=40 * M)
    assert idle.decide(EVICT, used, 45 * M, GRACE_S) is IdleVerdict.NOTHING
    assert idle.decide(EVICT, used, 71 * M, GRACE_S) is IdleVerdict.WARN


def test_a_trainer_that_waits_for_data_for_twenty_minutes() -> None:
    assert idle.decide(EVICT, IdlePodUse(100 * M), 120 * M, GRACE_S) is IdleVerdict.NOTHING


@pytest.mark.parametrize(
    ("last_ns", "verdict"),
    [(None, IdleVerdict.NOTHING), (80 * M, IdleVerdict.NOTHING), (0, IdleVerdict.WARN), (200 * M, IdleVerdict.NOTHING)],
)
def test_what_is_known_of_use(last_ns: int | None, verdict: IdleVerdict) -> None:
    assert idle.decide(EVICT, IdlePodUse(last_ns), 100 * M, GRACE_S) is verdict


def test_a_report_never_acts() -> None:
    assert (
        idle.decide(Rule(1800, IdleAction.REPORT), IdlePodUse(0, warned_ns=40 * M), 100 * M, GRACE_S)
        is IdleVerdict.REPORT
    )


@pytest.mark.parametrize(("seconds", "text"), [(45, "45s"), (60, "1m"), (1800, "30m"), (5400, "1h30m"), (7200, "2h")])
def test_durations(seconds: int, text: str) -> None:
    assert idle.duration_text(seconds) == text


times = st.integers(0, 200).map(lambda minutes: minutes * M)


@given(times, st.none() | times, times)
def test_no_action_without_a_warning_and_grace(last: int, warned: int | None, now: int) -> None:
    if idle.decide(EVICT, IdlePodUse(last, warned), now, GRACE_S) is IdleVerdict.ACT:
        assert warned is not None
        assert now - warned >= GRACE_S * 1_000_000_000
        assert warned > last
        assert now - last >= EVICT.after_s * 1_000_000_000
