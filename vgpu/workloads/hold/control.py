"""How much load to make: a closed loop around the card's utilisation. Pure: time and measurements are arguments.

The load is a kernel every 10 ms whose loop has `multiplier` iterations, so utilisation grows in proportion to the
multiplier until the card is full. A decision therefore scales the multiplier by target / measured, within limits; a
full card says only that the multiplier is too high. A measurement counts for a decision if it was taken `_LAG_NS`
after the last change, since NVML's utilisation is a mean over up to a second.

Others (processes that are not ours) stop the load at once. It starts again when nobody else has used the card for
`return_after_ns`. The cards of a job are used together: its ranks wait for each other, so the load stops on all of
them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

FIRST_MULTIPLIER: Final = 1000  # kernel loop iterations every 10 ms
_LEAST: Final = 10
_MOST: Final = 10**9
_S: Final = 1_000_000_000
_LAG_NS: Final = _S
_FAST_NS: Final = 3 * _S  # between decisions while the load is far from its target
_SLOW_NS: Final = 10 * _S
_NEAR: Final = 2.0  # percent from the target within which nothing is changed
_FULL: Final = 99.0  # percent: the multiplier is too high by an unknown factor
_BOOST: Final = 1.2  # where nothing is measured yet
_BACK_OFF: Final = 0.5  # of the multiplier on a full card
_LARGEST_STEP: Final = 4.0


class Mode(StrEnum):
    """Whether load is made."""

    RUN = "run"
    SLEEP = "sleep"


@dataclass(frozen=True, slots=True)
class HoldSettings:
    """What a user asks.

    Attributes:
        target: percent of utilisation.
        return_after_ns: how long nobody else may have used the card before the load returns.
        idle_after_ns: after how long without others `idle_target` replaces `target`; None for never.
    """

    target: float
    return_after_ns: int = 5 * _S
    idle_after_ns: int | None = None
    idle_target: float = 0.0


@dataclass(frozen=True, slots=True)
class LoadMeasurement:
    """What was seen at one time (CLOCK_MONOTONIC, ns).

    Attributes:
        utilisation: the card's, in percent; None where there is no new sample.
        others: whether another process used the card since the last measurement, or another card of its job.
        elsewhere: that other card, where nobody used this one; empty otherwise.
    """

    at_ns: int
    utilisation: float | None
    others: bool
    elsewhere: str = ""


@dataclass(frozen=True, slots=True)
class ControlState:
    """The loop's memory.

    Attributes:
        since_ns: when the mode began.
        changed_ns: when the multiplier last changed, or the mode.
        decided_ns: when the loop last decided.
        others_ns: when others were last seen, or the loop began.
        samples: utilisations since the last decision that count.
    """

    mode: Mode
    multiplier: int
    since_ns: int
    changed_ns: int
    decided_ns: int
    others_ns: int
    samples: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class ControlStep:
    """The next state, and lines for the log."""

    state: ControlState
    log: Sequence[str] = ()


def begin(now_ns: int) -> ControlState:
    """Return the first state."""
    return ControlState(Mode.RUN, FIRST_MULTIPLIER, now_ns, now_ns, now_ns, now_ns)


def target_now(settings: HoldSettings, state: ControlState, now_ns: int) -> float:
    """Return the target that is in force."""
    is_long = settings.idle_after_ns is not None and now_ns - state.others_ns >= settings.idle_after_ns
    return settings.idle_target if is_long else settings.target


def advance(settings: HoldSettings, state: ControlState, seen: LoadMeasurement) -> ControlStep:
    """Return what follows from a measurement."""
    if seen.others:
        return _yield(replace(state, others_ns=seen.at_ns), seen)
    if state.mode is Mode.SLEEP:
        return _wake(settings, state, seen)
    return _regulate(settings, _with_sample(state, seen), seen.at_ns)


def _yield(state: ControlState, seen: LoadMeasurement) -> ControlStep:
    if state.mode is Mode.SLEEP:
        return ControlStep(state)
    now = seen.at_ns
    asleep = replace(state, mode=Mode.SLEEP, since_ns=now, changed_ns=now, decided_ns=now, samples=())
    used = f"others use {seen.elsewhere}, which has a job with this card" if seen.elsewhere else "others use the card"
    return ControlStep(asleep, [f"Sleep: {used}, load {_whole(seen.utilisation)}"])


def _wake(settings: HoldSettings, state: ControlState, seen: LoadMeasurement) -> ControlStep:
    now = seen.at_ns
    if now - state.others_ns < settings.return_after_ns:
        return ControlStep(state)
    awake = replace(state, mode=Mode.RUN, since_ns=now, changed_ns=now, decided_ns=now, samples=())
    return ControlStep(awake, [f"Idle for {(now - state.since_ns) // _S}s with load {_whole(seen.utilisation)}"])


def _with_sample(state: ControlState, seen: LoadMeasurement) -> ControlState:
    if seen.utilisation is None or seen.at_ns - state.changed_ns < _LAG_NS:
        return state
    return replace(state, samples=(*state.samples, seen.utilisation)[-100:])


def _regulate(settings: HoldSettings, state: ControlState, now_ns: int) -> ControlStep:
    waited = now_ns - state.decided_ns
    if waited < _FAST_NS or not state.samples:
        return ControlStep(state)
    load = sum(state.samples) / len(state.samples)
    target = target_now(settings, state, now_ns)
    is_near = abs(load - target) <= _NEAR
    if is_near and waited < _SLOW_NS:
        return ControlStep(state)
    line = f"Run for {waited // _S}s with load {round(load)} and multiplier {state.multiplier}"
    multiplier = state.multiplier if is_near else _scaled(state.multiplier, load, target)
    changed = state.changed_ns if is_near else now_ns
    following = replace(state, multiplier=multiplier, changed_ns=changed, decided_ns=now_ns, samples=())
    return ControlStep(following, [line, *_adjusted(state.multiplier, multiplier)])


def _scaled(multiplier: int, load: float, target: float) -> int:
    if load >= _FULL > target:
        factor = _BACK_OFF
    elif load < 1:
        factor = _LARGEST_STEP if target >= 1 else 1 / _BOOST
    else:
        factor = min(max(target / load, 1 / _LARGEST_STEP), _LARGEST_STEP)
    return min(max(round(multiplier * factor), _LEAST), _MOST)


def _adjusted(before: int, after: int) -> list[str]:
    if after == before:
        return []
    return ["Adjusted speed: boost" if after > before else "Adjusted speed: slow down"]


def _whole(utilisation: float | None) -> str:
    return "unknown" if utilisation is None else str(round(utilisation))
