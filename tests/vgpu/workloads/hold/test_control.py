"""The loop that holds a card at a utilisation, in fake time around a model of a card."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vgpu.workloads.hold import control
from vgpu.workloads.hold.control import ControlState, HoldSettings, LoadMeasurement, Mode

S = 1_000_000_000
PERIOD = S // 2  # between measurements


@dataclass
class Card:
    """A card on which the load of one iteration takes `iteration_ns`; NVML's utilisation is the mean of a second.

    `others(t)` is the share of the card in percent that other processes take at second t.
    """

    iteration_ns: float
    others: Callable[[float], float] = lambda _: 0.0
    recent: list[float] = field(default_factory=list)

    def measure(self, state: ControlState, now: int) -> LoadMeasurement:
        own = state.multiplier * self.iteration_ns / 10_000_000 * 100 if state.mode is Mode.RUN else 0.0
        taken = self.others(now / S)
        self.recent = [*self.recent, min(100.0, own + taken)][-2:]
        return LoadMeasurement(now, sum(self.recent) / len(self.recent), taken > 0)


@dataclass
class Run:
    times: list[float] = field(default_factory=list)
    loads: list[float] = field(default_factory=list)
    modes: list[Mode] = field(default_factory=list)
    log: list[str] = field(default_factory=list)

    def mean(self, begin: float, end: float) -> float:
        chosen = [load for at, load in zip(self.times, self.loads, strict=True) if begin <= at < end]
        return sum(chosen) / len(chosen)

    def at(self, second: float) -> Mode:
        return next(mode for at, mode in zip(self.times, self.modes, strict=True) if at >= second)


def run(settings: HoldSettings, card: Card, seconds: int) -> Run:
    state, seen = control.begin(0), Run()
    for now in range(0, seconds * S, PERIOD):
        measurement = card.measure(state, now)
        step = control.advance(settings, state, measurement)
        state = step.state
        seen.times.append(now / S)
        seen.loads.append(measurement.utilisation or 0.0)
        seen.modes.append(state.mode)
        seen.log += step.log
    return seen


@pytest.mark.parametrize("target", [30, 50, 70, 95])
@pytest.mark.parametrize("iteration_ns", [20, 1000, 40_000])
def test_a_target_is_held_within_three_points_after_a_minute(target: float, iteration_ns: float) -> None:
    """From 20 % of a card to 400 % at the first multiplier."""
    seen = run(HoldSettings(target), Card(iteration_ns), 300)
    assert abs(seen.mean(60, 300) - target) <= 3
    assert set(seen.modes) == {Mode.RUN}


@given(st.floats(5, 95), st.floats(1, 200_000))
def test_any_target_on_any_card(target: float, iteration_ns: float) -> None:
    """Where the smallest load is below the target."""
    lightest = 10 * iteration_ns / 10_000_000 * 100
    if lightest < target:
        seen = run(HoldSettings(target), Card(iteration_ns), 120)
        assert abs(seen.mean(60, 120) - target) <= max(3, lightest)


def test_it_sleeps_within_a_second_of_others_and_returns_after_them() -> None:
    """A job from second 100 to second 160; the load is back 5 to 15 s after the job."""
    seen = run(HoldSettings(60), Card(1000, lambda t: 50.0 if 100 <= t < 160 else 0.0), 240)
    assert seen.at(99) is Mode.RUN
    assert seen.at(101) is Mode.SLEEP
    assert seen.at(164) is Mode.SLEEP
    assert seen.at(175) is Mode.RUN
    assert abs(seen.mean(200, 240) - 60) <= 3
    assert "Idle for 64s with load 0" in seen.log


def test_its_own_load_never_makes_it_sleep() -> None:
    assert Mode.SLEEP not in run(HoldSettings(69), Card(1000), 600).modes


def test_others_that_come_and_go_keep_it_asleep() -> None:
    seen = run(HoldSettings(60), Card(1000, lambda t: 10.0 if t > 60 and t % 4 < 1 else 0.0), 200)
    assert set(seen.modes[130:]) == {Mode.SLEEP}


def test_the_target_rises_after_a_long_time_without_others_and_falls_when_they_come() -> None:
    settings = HoldSettings(30, idle_after_ns=1800 * S, idle_target=60)
    seen = run(settings, Card(1000, lambda t: 20.0 if 2400 <= t < 2410 else 0.0), 2700)
    assert abs(seen.mean(1700, 1790) - 30) <= 3
    assert abs(seen.mean(1860, 2390) - 60) <= 3
    assert abs(seen.mean(2500, 2700) - 30) <= 3


def test_the_log() -> None:
    seen = run(HoldSettings(50), Card(1000), 60)
    assert seen.log[0] == "Run for 3s with load 10 and multiplier 1000"
    assert seen.log[1] == "Adjusted speed: boost"
    assert any(line.startswith("Run for 10s with load 50 and multiplier ") for line in seen.log)
    slow = run(HoldSettings(50), Card(9000), 60)
    assert slow.log[1] == "Adjusted speed: slow down"


def test_without_samples_nothing_changes() -> None:
    state = control.begin(0)
    for now in range(0, 60 * S, PERIOD):
        state = control.advance(HoldSettings(50), state, LoadMeasurement(now, None, others=False)).state
    assert state.multiplier == control.FIRST_MULTIPLIER
