"""joint_mode.h: whether tenants hold turns jointly, by what was measured of both ways."""

import ctypes
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.arbiter.simulation import MS, SECOND, START, U64

APART, _, TRIED, HELD = range(4)
GOES_ON, MEASURES, BEGINS, ENDS = range(4)
STEP = 20 * MS
DRAIN = 80 * MS


class Mode(ctypes.Structure):
    _fields_ = (
        ("phase", ctypes.c_int),
        ("since", U64),
        ("measured_since", U64),
        ("retry_at", U64),
        ("pause", U64),
        ("hold", U64),
        ("apart_permille", ctypes.c_uint32),
        ("joint_permille", ctypes.c_uint32),
        ("is_saturated", ctypes.c_bool),
        ("is_first", ctypes.c_bool),
        ("is_harmful", ctypes.c_bool),
        ("is_worse", ctypes.c_bool),
    )


class Figures(ctypes.Structure):
    _fields_ = (
        ("used_ns", U64),
        ("wanted_ns", U64),
        ("contested_ns", U64),
        ("is_possible", ctypes.c_bool),
        ("has_newcomer", ctypes.c_bool),
        ("is_any_at_risk", ctypes.c_bool),
        ("is_any_slower", ctypes.c_bool),
        ("is_any_unseen", ctypes.c_bool),
        ("is_any_behind", ctypes.c_bool),
    )


@dataclass
class Card:
    """A card whose kernels take `apart` or `joint` of its time.

    It is wanted for `wanted` of the time, and somebody waits for `contested` of it; None = as long as it is wanted.
    """

    library: ctypes.CDLL
    apart: float = 0.5
    joint: float = 0.8
    wanted: float = 1.0
    contested: float | None = None
    is_possible: bool = True
    is_at_risk: bool = False
    is_slower: bool = False
    is_unseen: bool = False
    is_behind: bool = False
    mode: Mode = field(default_factory=lambda: Mode(since=START, measured_since=START))
    now: int = START
    begins: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    joint_ns: int = 0

    @property
    def is_on(self) -> bool:
        return bool(self.mode.phase != APART)

    def step(self, *, has_newcomer: bool = False) -> int:
        self.now += STEP
        self.joint_ns += STEP if self.is_on else 0
        passed = self.now - self.mode.measured_since
        used = self.joint if self.is_on else self.apart
        wanted = 0 if self.is_on else int(passed * self.wanted)
        contested = wanted if self.contested is None else int(passed * self.contested)
        joint = (part and self.is_on for part in (self.is_slower, self.is_unseen, self.is_behind))
        conditions = (self.is_possible, has_newcomer, self.is_at_risk)
        figures = Figures(int(passed * used), wanted, contested, *conditions, *joint)
        was_on = self.is_on
        change: int = self.library.joint_mode_step(ctypes.byref(self.mode), ctypes.byref(figures), U64(self.now))
        assert (change == BEGINS) == (self.is_on and not was_on)
        assert (change == ENDS) == (was_on and not self.is_on)
        assert (change == GOES_ON) or self.mode.measured_since == self.now
        (self.begins if change == BEGINS else self.ends if change == ENDS else []).append(self.now)
        return change

    def run(self, seconds: float) -> None:
        for _ in range(int(seconds * SECOND / STEP)):
            self.step()


def test_turns_that_waste_the_card_become_joint_within_two_seconds(pure: ctypes.CDLL) -> None:
    card = Card(pure)
    card.step(has_newcomer=True)
    card.run(2)
    assert card.mode.phase == HELD
    assert 1.2 * SECOND <= card.begins[0] - START <= 1.3 * SECOND  # in the first measurement kernels are loaded


def test_turns_whose_kernels_fill_the_card_stay_apart(pure: ctypes.CDLL) -> None:
    card = Card(pure, apart=0.97, joint=0.99)
    card.run(60)
    assert card.begins == []


def test_a_card_that_is_hardly_wanted_is_left_alone(pure: ctypes.CDLL) -> None:
    card = Card(pure, apart=0.001, wanted=0.01)
    card.run(60)
    assert card.begins == []


def test_what_is_wanted_counts_and_not_the_time_that_passes(pure: ctypes.CDLL) -> None:
    """Requests at random moments leave the card idle, but the turns themselves waste nothing."""
    card = Card(pure, apart=0.29, wanted=0.3)
    card.run(60)
    assert card.begins == []


@pytest.mark.parametrize("joint", [0.4, 0.505])
def test_a_trial_that_shows_no_gain_ends_and_is_repeated_more_and_more_seldom(pure: ctypes.CDLL, joint: float) -> None:
    card = Card(pure, joint=joint)
    card.run(600)
    pauses = [begin - end for end, begin in zip(card.ends, card.begins[1:], strict=False)]
    assert card.mode.phase == APART
    assert pauses == sorted(pauses)
    assert pauses[-1] > 100 * SECOND
    assert card.joint_ns < 0.01 * 600 * SECOND


@pytest.mark.parametrize("wanted", [0.3, 1.0])
def test_where_nobody_waits_for_long_the_same_use_is_no_reason_against(pure: ctypes.CDLL, wanted: float) -> None:
    """Both ways do all that is wanted. A turn is held until it is asked back, also while it is not used."""
    card = Card(pure, apart=0.1, joint=0.1, wanted=wanted, contested=0.1)
    card.run(2)
    assert card.mode.phase == HELD


@pytest.mark.parametrize("contested", [0.2, 1.0])
def test_a_tenant_that_is_served_more_slowly_is_a_reason_against(pure: ctypes.CDLL, contested: float) -> None:
    card = Card(pure, apart=0.5, joint=0.9, contested=contested, is_slower=True)
    card.run(60)
    assert card.mode.phase == APART
    assert card.joint_ns < 0.01 * 60 * SECOND


def test_a_trial_is_broken_off_as_soon_as_a_tenant_is_slower_and_the_next_one_is_far(pure: ctypes.CDLL) -> None:
    card = Card(pure, is_slower=True)
    card.run(100)
    assert all(end - begin <= DRAIN + 2 * STEP for begin, end in zip(card.begins, card.ends, strict=True))
    pauses = [begin - end for end, begin in zip(card.ends, card.begins[1:], strict=False)]
    assert len(pauses) == 2
    assert 20 * SECOND <= pauses[0] <= 21 * SECOND
    assert pauses[1] >= 2 * 20 * SECOND


def test_nothing_is_judged_while_the_work_of_before_still_runs(pure: ctypes.CDLL) -> None:
    """Sixteen programs were charged 223 ms in the first 60 ms of a trial: for their turns before it."""
    card = Card(pure)
    while not card.is_on:
        card.step()
    card.is_slower = True
    card.run(0.06)
    card.is_slower = False
    card.run(1)
    assert card.mode.phase == HELD


def test_a_trial_in_which_a_tenant_is_slower_late_is_broken_off_too(pure: ctypes.CDLL) -> None:
    card = Card(pure)
    while not card.is_on:
        card.step()
    card.run(0.3)
    assert card.mode.phase == TRIED
    card.is_slower = True
    card.run(0.04)
    assert not card.is_on
    card.is_slower = False
    card.run(19)
    assert len(card.begins) == 1


@pytest.mark.parametrize(("apart", "is_tried"), [(0.94, False), (0.85, False), (0.7, True)])
def test_where_a_tenant_is_at_risk_turns_must_waste_much(pure: ctypes.CDLL, apart: float, *, is_tried: bool) -> None:
    """Requests beside a burner wait for twice as long in time slices."""
    card = Card(pure, apart=apart, is_at_risk=True)
    card.run(60)
    assert bool(card.begins) == is_tried


def test_a_loss_by_chance_keeps_no_crowd_apart_for_long(pure: ctypes.CDLL) -> None:
    """When sixteen programs start, some have the card while others still load their kernels."""
    card = Card(pure, apart=0.9, joint=0.6)
    card.run(1.8)
    assert len(card.ends) == 1
    card.apart, card.joint = 0.5, 0.9
    card.run(2.5)
    assert card.mode.phase == HELD


def test_newcomers_bring_no_more_trials_after_one_that_was_harmful(pure: ctypes.CDLL) -> None:
    """A notebook that rests and works in turn is a newcomer each time."""
    card = Card(pure, is_slower=True)
    for _ in range(60):
        card.run(2)
        card.step(has_newcomer=True)
    assert 120 / 21 - 1 <= len(card.begins) <= 120 / 20


def test_a_trial_that_only_shows_no_gain_is_repeated_soon_for_a_newcomer(pure: ctypes.CDLL) -> None:
    card = Card(pure, joint=0.5)
    card.run(60)
    card.step(has_newcomer=True)
    card.joint = 0.8
    card.run(2)
    assert card.mode.phase == HELD


def test_two_decoders_that_wait_for_each_token_gain_a_few_percent(pure: ctypes.CDLL) -> None:
    card = Card(pure, apart=0.945, joint=0.995)
    card.run(2)
    assert card.mode.phase == HELD


def test_a_trial_goes_on_until_all_tenants_have_waited_for_something(pure: ctypes.CDLL) -> None:
    """Prompts that come six times a second: what is not asked for is not slower."""
    card = Card(pure, contested=0.2, is_unseen=True)
    card.run(2.6)
    assert card.mode.phase == TRIED
    card.is_unseen, card.is_slower = False, True
    card.run(0.1)
    assert card.mode.phase == APART


def test_a_trial_ends_where_a_tenant_waits_for_nothing(pure: ctypes.CDLL) -> None:
    card = Card(pure, contested=0.2, is_unseen=True)
    card.run(4)
    assert card.mode.phase == HELD


@pytest.mark.parametrize("contested", [0.2, 1.0])
@pytest.mark.parametrize("worse", ["is_slower", "is_behind"])
def test_joint_turns_end_for_a_tenant_that_is_worse_off_in_two_measurements(
    pure: ctypes.CDLL, worse: str, contested: float
) -> None:
    card = Card(pure, contested=contested)
    card.run(3)
    setattr(card, worse, True)
    begun = card.now
    card.run(3)
    assert 1 * SECOND < card.ends[0] - begun <= 2.1 * SECOND


def test_a_tenant_that_is_behind_in_the_trial_ends_it(pure: ctypes.CDLL) -> None:
    card = Card(pure, is_behind=True)
    card.run(1.5)
    assert card.ends[0] - card.begins[0] <= 0.5 * SECOND


@pytest.mark.heavy
def test_the_other_way_is_measured_again_more_and_more_seldom(pure: ctypes.CDLL) -> None:
    card = Card(pure)
    card.run(1800)
    held = [end - begin for begin, end in zip(card.begins, card.ends, strict=False)]
    assert held == sorted(held)
    assert 60 * SECOND <= held[0] <= 62 * SECOND
    assert held[-1] >= 2 * held[0]
    assert card.joint_ns > 0.99 * 1800 * SECOND


def test_programs_that_do_something_else_are_measured_again(pure: ctypes.CDLL) -> None:
    card = Card(pure)
    card.run(10)
    card.joint = 0.97
    changed = card.now
    card.run(2)
    assert card.ends[0] - changed <= 1.1 * SECOND


@pytest.mark.parametrize("trial", [2.0, 0.55])
def test_what_is_read_in_the_first_seconds_is_no_reason_to_measure_again(pure: ctypes.CDLL, trial: float) -> None:
    """The estimates, of which the card's use is the sum, change then."""
    card = Card(pure, joint=trial)
    card.run(2)
    assert card.mode.phase == HELD
    card.joint = 0.8
    card.run(30)
    assert card.ends == []


@pytest.mark.parametrize("seconds", [0.3, 0.7, 0.9, 5])
def test_a_newcomer_ends_joint_turns_and_all_is_measured_anew(pure: ctypes.CDLL, seconds: float) -> None:
    card = Card(pure)
    card.run(seconds)
    card.step(has_newcomer=True)
    assert not card.is_on
    card.run(0.5)
    assert not card.is_on


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.sampled_from(("step", "new", "behind", "not behind", "impossible", "possible", "full", "waste")),
        max_size=400,
    )
)
def test_impossible_ends_joint_turns_at_once_whatever_came_before(pure: ctypes.CDLL, events: list[str]) -> None:
    """The checks of `Card.step` hold as well: joint turns begin once, and end once."""
    card = Card(pure)
    for event in events:
        card.is_behind = {"behind": True, "not behind": False}.get(event, card.is_behind)
        card.is_possible = {"impossible": False, "possible": True}.get(event, card.is_possible)
        card.apart = {"full": 0.98, "waste": 0.4}.get(event, card.apart)
        card.step(has_newcomer=event == "new")
        assert card.is_possible or not card.is_on
        card.run(0.2)
        assert card.is_possible or not card.is_on
