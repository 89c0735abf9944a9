"""Which cards of a container are linked, and how linked cards open and close together, in virtual time."""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import Phase, given, settings
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
        ("tokens", ctypes.c_int64),
        ("batches", ctypes.c_uint32),
        ("share", ctypes.c_uint),
        ("is_served", ctypes.c_bool),
        ("is_open", ctypes.c_bool),
        ("is_active", ctypes.c_bool),
        ("is_in_batch", ctypes.c_bool),
    )

    window: int
    used: int
    tokens: int
    batches: int
    share: int
    is_served: bool
    is_open: bool
    is_active: bool
    is_in_batch: bool


def wait_for(pure: ctypes.CDLL, own: LinkedCard, others: Sequence[LinkedCard]) -> tuple[int, int]:
    """Ns until the card may open, and in which window."""
    window = ctypes.c_uint32()
    array = (LinkedCard * len(others))(*others)
    pure.linked_cards_wait.restype = U64
    wait = int(pure.linked_cards_wait(ctypes.byref(own), array, len(others), ctypes.byref(window)))
    return wait, window.value


def judge(pure: ctypes.CDLL, own: LinkedCard, others: Sequence[LinkedCard], *, fits: bool) -> int:
    array = (LinkedCard * len(others))(*others)
    return int(pure.linked_cards_judge(ctypes.byref(own), array, len(others), fits))


def may_owe(pure: ctypes.CDLL, tokens: int, for_others: int) -> bool:
    pure.linked_cards_may_owe.restype = ctypes.c_bool
    return bool(pure.linked_cards_may_owe(ctypes.c_int64(tokens), U64(for_others)))


cards = st.builds(
    LinkedCard,
    window=st.integers(5, 8),
    used=st.integers(0, 200 * MS),
    tokens=st.integers(-300 * MS, 10 * MS),
    batches=st.integers(0, 4),
    share=st.sampled_from([0, 20, 50, 80]),
    is_served=st.booleans(),
    is_open=st.booleans(),
    is_active=st.booleans(),
    is_in_batch=st.booleans(),
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


@given(own=cards, others=st.lists(cards, max_size=4), fits=st.booleans())
def test_a_card_admits_until_all_have_had_their_budget_and_it_has_as_many_batches(
    pure: ctypes.CDLL, own: LinkedCard, others: list[LinkedCard], *, fits: bool
) -> None:
    expected = FULL
    same = [card for card in others if card.window == own.window]
    are_served = all(card.window == own.window and card.is_served for card in others if card.is_active)
    if any(card.window > own.window for card in others):
        expected = FULL
    elif fits or (own.used < AHEAD_MAX and (not are_served or (own.is_in_batch and others))):
        expected = FITS
    elif own.used < AHEAD_MAX and any(own.batches < card.batches for card in same):
        expected = CATCHES_UP
    assert judge(pure, own, others, fits=fits) == expected


def judge_last(pure: ctypes.CDLL, own: LinkedCard, others: Sequence[LinkedCard]) -> int:
    array = (LinkedCard * len(others))(*others)
    return int(pure.linked_cards_judge_last(ctypes.byref(own), array, len(others)))


@given(own=cards, others=st.lists(cards, max_size=4))
def test_a_card_that_is_asked_back_ends_its_batch_and_admits_as_many_as_the_card_with_most(
    pure: ctypes.CDLL, own: LinkedCard, others: list[LinkedCard]
) -> None:
    same = [card for card in others if card.window == own.window]
    expected = FULL
    if own.used < AHEAD_MAX and not any(card.window > own.window for card in others):
        if own.is_in_batch and others:
            expected = FITS
        elif any(card.batches > own.batches for card in same):
            expected = CATCHES_UP
    assert judge_last(pure, own, others) == expected


@given(begun=st.lists(st.integers(0, 30), min_size=2, max_size=5), seen=st.data())
def test_cards_that_are_asked_back_end_at_the_same_number_of_batches(
    pure: ctypes.CDLL, begun: list[int], seen: st.DataObject
) -> None:
    """Whatever each had, and whichever launches next: a card that has ended is not overtaken."""
    states = [LinkedCard(window=5, batches=batches) for batches in begun]
    launches = 0
    while going := [
        own for own in states if judge_last(pure, own, [card for card in states if card is not own]) != FULL
    ]:
        seen.draw(st.sampled_from(going)).batches += 1
        launches += 1
        assert launches <= max(begun) * len(begun)
    assert [card.batches for card in states] == [max(begun)] * len(begun)


@given(tokens=st.integers(-300 * MS, 10 * MS), for_others=st.integers(0, 300 * MS))
def test_a_card_goes_on_for_others_while_it_owes_no_more_than_it_may_be_ahead(
    pure: ctypes.CDLL, tokens: int, for_others: int
) -> None:
    """Or, if it owes more for other reasons, until it has launched as much for them since its last window."""
    assert may_owe(pure, tokens, for_others) == (tokens > -AHEAD_MAX or for_others < AHEAD_MAX)


def test_numbers_of_windows_wrap_around(pure: ctypes.CDLL) -> None:
    own = LinkedCard(window=2**32 - 1, tokens=MS, share=50)
    assert wait_for(pure, own, [LinkedCard(window=2**32 - 1, tokens=MS, share=50)]) == (0, 0)
    assert wait_for(pure, own, [LinkedCard(window=0, tokens=-MS, share=50)]) == (0, 0)
    assert judge(pure, own, [LinkedCard(window=0)], fits=True) == FULL


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
LATE_AFTER, LONG_AFTER = 2 * TICK, 10 * TICK  # how long a launch waits while other cards' work is late, or goes on


@dataclass
class SimulatedCard:
    """A card of a job whose steps end with a collective, and its gate, with estimates that are right."""

    kernels: list[int]  # of a step, in ns; the last one is the collective
    share: int
    state: LinkedCard
    launched: int = 0
    in_window: int = 0  # batches of launches: of one, unless a thread launches for all cards
    done: int = 0  # launches that have ended
    worked: int = 0  # ns of the present one
    used: int = 0  # ns of the card in the open window
    expected: int = 0  # ns until its work should have ended; negative: since then
    held_for: int = 0
    is_closing: bool = False
    for_others: int = 0  # ns of launches without a window since the last one

    def is_at_work(self) -> bool:
        return self.done < self.launched

    def next(self) -> int:
        return self.kernels[self.launched % len(self.kernels)]

    def is_collective(self, number: int) -> bool:
        return number % len(self.kernels) == len(self.kernels) - 1

    def may_launch(self) -> bool:
        return self.launched // len(self.kernels) <= self.done // len(self.kernels) + STEPS_AHEAD - 1

    def launch(self) -> None:
        self.expected = max(self.expected, 0) + self.next()
        self.launched += 1


class Job:
    """A job on linked cards that are its own. A thread, for all cards or for each one, launches when it may."""

    def __init__(self, pure: ctypes.CDLL, kernels: Sequence[list[int]], share: int, *, is_serial: bool) -> None:
        self.pure = pure
        self.is_serial = is_serial
        self.turn = 0  # the card that the one thread launches for
        self.cards = [
            SimulatedCard(of, share, LinkedCard(window=1, share=share, tokens=BURST_CAP, is_active=True))
            for of in kernels
        ]

    def others(self, card: SimulatedCard) -> list[LinkedCard]:
        return [other.state for other in self.cards if other is not card]

    def _launch(self, card: SimulatedCard, verdict: int) -> None:
        card.state.used += card.next()
        card.in_window += not self._is_in_batch(card)
        card.launch()
        if verdict == FITS:
            card.state.batches = card.in_window

    def _is_in_batch(self, card: SimulatedCard) -> bool:
        return self.is_serial and card.launched % len(card.kernels) != 0

    def _open(self, card: SimulatedCard) -> bool:
        """Whether the card has launched, in a new window or for the others."""
        wait, window = wait_for(self.pure, card.state, self.others(card))
        if wait == 0:
            card.state.window, card.state.used, card.state.batches = window, 0, 0
            card.state.is_open, card.state.is_served, card.in_window = True, False, 0
            card.for_others = 0
            self._launch(card, FITS)
        elif self._is_awaited(card):
            card.state.used = 0
            card.launch()
        else:
            return False
        card.held_for = 0
        return True

    def _is_awaited(self, card: SimulatedCard) -> bool:
        if card.is_at_work():
            return False
        card.held_for += TICK
        at_work = [other for other in self.cards if other is not card and other.is_at_work()]
        is_late = any(other.expected < 0 for other in at_work) and card.held_for >= LATE_AFTER
        return (is_late or (bool(at_work) and card.held_for >= LONG_AFTER)) and may_owe(
            self.pure, card.state.tokens, card.for_others
        )

    def _admit(self, card: SimulatedCard) -> bool:
        fits = card.state.used + card.next() <= BUDGET
        card.state.is_served |= not fits
        window, used, is_in_batch = card.state.window, card.state.used, self._is_in_batch(card)
        own = LinkedCard(window=window, used=used, batches=card.in_window, is_in_batch=is_in_batch)
        verdict = judge(self.pure, own, self.others(card), fits=fits)
        if verdict == FULL:
            card.is_closing = True
            return False
        self._launch(card, verdict)
        return True

    def _launch_for(self, card: SimulatedCard) -> bool:
        """Whether a launch went to the card."""
        if not card.may_launch() or card.is_closing:
            return False
        return self._admit(card) if card.state.is_open else self._open(card)

    def _host(self) -> None:
        if not self.is_serial:
            for card in self.cards:
                while self._launch_for(card):
                    pass
            return
        while self._launch_for(self.cards[self.turn]):
            if self.cards[self.turn].launched % len(self.cards[self.turn].kernels) == 0:
                self.turn = (self.turn + 1) % len(self.cards)

    def _work(self, card: SimulatedCard) -> None:
        if not card.is_at_work():
            return
        card.used += TICK
        card.expected -= TICK
        step = card.done // len(card.kernels)
        if card.is_collective(card.done) and any(not self._has_begun(other, step) for other in self.cards):
            return  # it spins
        card.worked += TICK
        if card.worked >= card.kernels[card.done % len(card.kernels)]:
            card.done, card.worked = card.done + 1, 0

    @staticmethod
    def _has_begun(card: SimulatedCard, step: int) -> bool:
        """Whether the card's kernel of this step's collective has begun."""
        is_there = card.done == (step + 1) * len(card.kernels) - 1
        return card.done >= (step + 1) * len(card.kernels) or (is_there and card.is_at_work())

    def _charge(self, card: SimulatedCard) -> None:
        """Also what went without a window."""
        is_over = card.is_closing or not card.state.is_open
        if is_over and not card.is_at_work():
            card.state.tokens = min(card.state.tokens - card.used, BURST_CAP)
            card.for_others += 0 if card.state.is_open else card.used
            card.used, card.is_closing, card.state.is_open = 0, False, False

    def run(self, ns: int) -> float:
        """Steps that the job does in that time."""
        for _ in range(ns // TICK):
            self._host()
            for card in self.cards:
                self._work(card)
            for card in self.cards:
                card.state.tokens += TICK * card.share // 100
                self._charge(card)
        return min(card.done / len(card.kernels) for card in self.cards)


shares = st.sampled_from([20, 50, 80])
works = st.lists(st.integers(2, 40), min_size=1, max_size=8)
COLLECTIVE = 5
LEAST_OF_UNEQUAL = 0.8


def nanoseconds(ticks: Sequence[int]) -> list[int]:
    return [count * 2 * TICK for count in (*ticks, COLLECTIVE)]


@settings(max_examples=8, deadline=None)
@given(work=works, count=st.integers(2, 4), share=shares, is_serial=st.booleans())
def test_a_job_has_its_share_of_its_own_speed(
    pure: ctypes.CDLL, work: list[int], count: int, share: int, *, is_serial: bool
) -> None:
    """At least share x alone, and no more than that and what is saved (rule F), if each card has as much work."""
    kernels, seconds = nanoseconds(work), 1
    step = sum(kernels) + TICK  # a kernel begins up to a tick late
    steps = Job(pure, [kernels] * count, share, is_serial=is_serial).run(seconds * 1000 * MS)
    assert steps * step >= 0.97 * share / 100 * seconds * 1000 * MS - 2 * step
    saved = BURST_CAP + 2 * AHEAD_MAX + 2 * step
    assert steps * sum(kernels) <= share / 100 * seconds * 1000 * MS + saved


@pytest.mark.heavy
@settings(max_examples=8, deadline=None)
@given(
    works=st.lists(works, min_size=2, max_size=4),
    share=shares,
    is_serial=st.booleans(),
)
def test_a_job_with_unequal_work_has_its_share(
    pure: ctypes.CDLL, works: list[list[int]], share: int, *, is_serial: bool
) -> None:
    """Counted by the card with the most work; the number of kernels differs, too."""
    kernels, seconds = [nanoseconds(work) for work in works], 1
    step = max(sum(of) for of in kernels) + TICK
    steps = Job(pure, kernels, share, is_serial=is_serial).run(seconds * 1000 * MS)
    assert steps * step >= LEAST_OF_UNEQUAL * share / 100 * seconds * 1000 * MS - 2 * step


short_works = st.lists(st.integers(2, 20), min_size=1, max_size=6)


@pytest.mark.heavy
@settings(max_examples=8, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(work=short_works, share=shares, owed=st.integers(300, 600))
def test_a_debt_of_a_card_that_others_wait_for_is_repaid_once(
    pure: ctypes.CDLL, work: list[int], share: int, owed: int
) -> None:
    """A card has closed with a debt while another one's collective spins for it, as after work that only it had.

    Before, it stayed closed: the other one spun until it had repaid, owed that time, and was waited for likewise.
    """
    kernels = nanoseconds(work)
    job = Job(pure, [kernels] * 2, share, is_serial=False)
    own, other = job.cards
    own.state.tokens = -owed * MS
    other.state.is_open = True
    for _ in kernels:
        job._launch(other, FITS)
    before = job.run((owed + 2 * AHEAD_MAX // MS) * 100 // share * MS)
    assert other.state.window > 1
    step = sum(kernels) + TICK
    assert (job.run(1000 * MS) - before) * step >= 0.8 * share / 100 * 1000 * MS - 2 * step
