"""Which cards of a container are linked, and how linked cards open and close together, in virtual time."""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.limiter.compute.turn_structures import MS, U64
from tests.limiter.region.test_account import GPUS, Identity
from vgpu.domain.formats import limits

FULL, FITS, CATCHES_UP = range(3)
AHEAD_MAX = 100 * MS
CARDS = 8


class LinkedCard(ctypes.Structure):
    """struct linked_card of linked_cards.h."""

    _fields_ = (
        ("window", ctypes.c_uint32),
        ("used", U64),
        ("goal", U64),
        ("tokens", ctypes.c_int64),
        ("share", ctypes.c_uint),
        ("is_open", ctypes.c_bool),
        ("is_active", ctypes.c_bool),
    )

    window: int
    used: int
    goal: int
    tokens: int
    share: int
    is_open: bool
    is_active: bool


def wait_for(pure: ctypes.CDLL, own: LinkedCard, others: Sequence[LinkedCard]) -> tuple[int, int]:
    """Ns until the card may open, and in which window."""
    window = ctypes.c_uint32()
    array = (LinkedCard * len(others))(*others)
    pure.linked_cards_wait.restype = U64
    wait = int(pure.linked_cards_wait(ctypes.byref(own), array, len(others), ctypes.byref(window)))
    return wait, window.value


def judge(pure: ctypes.CDLL, own: LinkedCard, others: Sequence[LinkedCard], budget: int, *, fits: bool) -> int:
    array = (LinkedCard * len(others))(*others)
    return int(pure.linked_cards_judge(ctypes.byref(own), array, len(others), U64(budget), fits))


cards = st.builds(
    LinkedCard,
    window=st.integers(5, 8),
    used=st.integers(0, 200 * MS),
    goal=st.integers(0, 200 * MS),
    tokens=st.integers(-300 * MS, 10 * MS),
    share=st.sampled_from([0, 20, 50, 80]),
    is_open=st.booleans(),
    is_active=st.booleans(),
)


def debt(card: LinkedCard) -> float:
    """Ns until the card has repaid what it was charged, and what it will be."""
    owed = (card.used if card.is_open else 0) - card.tokens
    return owed * 100 / card.share if owed > 0 and card.share else 0


@given(own=cards, others=st.lists(cards, max_size=4))
def test_a_card_opens_when_all_have_repaid_or_another_one_has_opened(
    pure: ctypes.CDLL, own: LinkedCard, others: list[LinkedCard]
) -> None:
    wait, window = wait_for(pure, own, others)
    newest = max(card.window for card in (own, *others))
    if newest > own.window:
        assert (wait, window) == (0, newest)
    else:
        assert window == own.window + 1
        assert wait == pytest.approx(max(debt(card) for card in (own, *others)), abs=2)


@given(own=cards, others=st.lists(cards, max_size=4), budget=st.integers(1, 20 * MS), fits=st.booleans())
def test_a_card_admits_until_all_have_had_their_budget_and_it_has_caught_up(
    pure: ctypes.CDLL, own: LinkedCard, others: list[LinkedCard], budget: int, *, fits: bool
) -> None:
    expected = FULL
    served = [card.used if card.window == own.window else 0 for card in others if card.is_active]
    if any(card.window > own.window for card in others):
        expected = FULL
    elif fits or (any(used < budget for used in served) and own.used < AHEAD_MAX):
        expected = FITS
    elif any(card.window == own.window and own.used < card.goal for card in others):
        expected = CATCHES_UP
    assert judge(pure, own, others, budget, fits=fits) == expected


def test_numbers_of_windows_wrap_around(pure: ctypes.CDLL) -> None:
    own = LinkedCard(window=2**32 - 1, tokens=MS, share=50)
    assert wait_for(pure, own, [LinkedCard(window=2**32 - 1, tokens=MS, share=50)]) == (0, 0)
    assert wait_for(pure, own, [LinkedCard(window=0, tokens=-MS, share=50)]) == (0, 0)
    assert judge(pure, own, [LinkedCard(window=0)], MS, fits=True) == FULL


@given(
    joined=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2**CARDS - 1)), max_size=6), parted=st.integers(0, 7)
)
def test_cards_are_linked_by_what_processes_have_joined(
    pure: ctypes.CDLL, joined: list[tuple[int, int]], parted: int
) -> None:
    region = ctypes.c_void_p(pure.region_anonymous())
    pure.linked_cards_of.restype = ctypes.c_uint32
    masks = [0] * 4
    for pid in range(1, 5):
        pure.account_claim_slot(region, ctypes.byref(Identity(pid, pid * 10, 77)))
    for slot, mask in joined:
        pure.linked_cards_join(region, slot, ctypes.c_uint32(mask))
        masks[slot] |= mask
    if parted < len(masks):
        pure.linked_cards_part(region, parted)
        masks[parted] = 0
    sets = [{card} for card in range(CARDS)]
    for mask in masks:
        members = {card for card in range(CARDS) if mask >> card & 1}
        merged = members.union(*(of for of in sets if of & members))
        sets = [of for of in sets if not of & merged] + ([merged] if merged else [])
    for card in range(CARDS):
        (own,) = (of for of in sets if card in of)
        wanted = sum(1 << other for other in own) if len(own) > 1 else 0
        assert pure.linked_cards_of(region, card) == wanted
    pure.region_close(region)


def test_a_process_that_has_ended_links_no_cards(pure: ctypes.CDLL) -> None:
    region = ctypes.c_void_p(pure.region_anonymous())
    for gpu in GPUS[:2]:
        pure.account_find_or_add_card(region, limits.uuid_bytes(gpu))
    slot = pure.account_claim_slot(region, ctypes.byref(Identity(1, 10, 77)))
    pure.linked_cards_join(region, slot, ctypes.c_uint32(3))
    assert pure.linked_cards_of(region, 0) == 3
    pure.account_clear_slot(region, slot)
    assert pure.linked_cards_of(region, 0) == 0
    assert pure.account_claim_slot(region, ctypes.byref(Identity(2, 20, 77))) == slot
    assert pure.linked_cards_of(region, 0) == 0
    pure.region_close(region)


TICK = MS // 10
BUDGET = 5 * MS
BURST_CAP = 10 * MS
STEPS_AHEAD = 2
OVERDRAFT = 50 * MS  # the most that is lent, and what comes back in a second
EARLY_AFTER = 2 * TICK


@dataclass
class SimulatedCard:
    """A card of a data-parallel job, its host, and its gate, with estimates that are right."""

    kernels: list[int]  # of a step; the last one is the collective
    share: int
    state: LinkedCard
    launched: int = 0
    done: int = 0  # launches that have ended
    worked: int = 0  # ns of the present one
    used: int = 0  # ns of the card in the open window
    overdraft: int = OVERDRAFT
    held_for: int = 0
    is_closing: bool = False

    def is_at_work(self) -> bool:
        return self.done < self.launched

    def kernel(self, number: int) -> int:
        return self.kernels[number % len(self.kernels)]

    def is_collective(self, number: int) -> bool:
        return number % len(self.kernels) == len(self.kernels) - 1

    def may_launch(self) -> bool:
        return self.launched // len(self.kernels) <= self.done // len(self.kernels) + STEPS_AHEAD - 1


class Job:
    """A job on linked cards that are its own. Every thread launches whenever it may."""

    def __init__(self, pure: ctypes.CDLL, kernels: Sequence[list[int]], share: int) -> None:
        self.pure = pure
        self.cards = [
            SimulatedCard(of, share, LinkedCard(window=1, share=share, tokens=BURST_CAP, is_active=True))
            for of in kernels
        ]

    def others(self, card: SimulatedCard) -> list[LinkedCard]:
        return [other.state for other in self.cards if other is not card]

    def _launch(self, card: SimulatedCard, verdict: int) -> None:
        state, ns = card.state, card.kernel(card.launched)
        state.used += ns
        state.goal = state.used if verdict == FITS else state.goal
        card.launched += 1

    def _open(self, card: SimulatedCard) -> None:
        wait, window = wait_for(self.pure, card.state, self.others(card))
        if wait == 0:
            state = card.state
            state.window, state.used, state.goal, state.is_open = window, 0, 0, True
            self._launch(card, FITS)
        elif self._is_lent(card, card.kernel(card.launched)):
            card.launched += 1

    def _is_lent(self, card: SimulatedCard, ns: int) -> bool:
        """Whether the launch may go early, because another card may be waiting for it."""
        is_awaited = any(other.is_at_work() for other in self.cards if other is not card) and not card.is_at_work()
        card.held_for += TICK
        if not is_awaited or card.held_for < EARLY_AFTER or card.overdraft < ns:
            return False
        card.overdraft, card.held_for = card.overdraft - ns, 0
        return True

    def _host(self, card: SimulatedCard) -> None:
        while card.may_launch() and not card.is_closing:
            if not card.state.is_open:
                before = card.launched
                self._open(card)
                if card.launched == before or not card.state.is_open:
                    return
                continue
            ns = card.kernel(card.launched)
            fits = card.state.used + ns <= BUDGET
            verdict = judge(self.pure, card.state, self.others(card), BUDGET, fits=fits)
            if verdict == FULL:
                card.is_closing = True
                return
            self._launch(card, verdict)

    def _work(self, card: SimulatedCard) -> None:
        if not card.is_at_work():
            return
        card.used += TICK
        if card.is_collective(card.done) and any(other.done < card.done for other in self.cards):
            return  # it spins
        card.worked += TICK
        if card.worked >= card.kernel(card.done):
            card.done, card.worked = card.done + 1, 0

    def _charge(self, card: SimulatedCard) -> None:
        """Also what went early without a window."""
        is_over = card.is_closing or not card.state.is_open
        if is_over and not card.is_at_work():
            card.state.tokens = min(card.state.tokens - card.used, BURST_CAP)
            card.used, card.is_closing, card.state.is_open = 0, False, False

    def run(self, ns: int) -> float:
        """Steps that the job does in that time."""
        for _ in range(ns // TICK):
            for card in self.cards:
                self._host(card)
            for card in self.cards:
                self._work(card)
            for card in self.cards:
                card.overdraft = min(card.overdraft + TICK // 20, OVERDRAFT)
                card.state.tokens += TICK * card.share // 100
                self._charge(card)
        return min(card.done / len(card.kernels) for card in self.cards)


@settings(max_examples=12, deadline=None)
@given(
    work=st.lists(st.integers(2, 40), min_size=1, max_size=8),
    count=st.integers(2, 4),
    share=st.sampled_from([20, 50, 80]),
)
def test_a_job_has_its_share_of_its_own_speed(pure: ctypes.CDLL, work: list[int], count: int, share: int) -> None:
    """At least share x alone, and no more than that and what is saved (rule F), if each card has as much work."""
    kernels = [ticks * 2 * TICK for ticks in (*work, 5)]
    seconds, step = 2, sum(kernels) + TICK  # a kernel begins up to a tick late
    steps = Job(pure, [kernels] * count, share).run(seconds * 1000 * MS)
    assert steps * step >= 0.97 * share / 100 * seconds * 1000 * MS - 2 * step
    saved = BURST_CAP + AHEAD_MAX + OVERDRAFT + 2 * step
    assert steps * sum(kernels) <= share / 100 * seconds * 1000 * MS + saved
