"""GPU seconds of containers, other processes and cards, from NVML's samples and from turns."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vgpu.adapters.nvml.records import BusySamples
from vgpu.domain.identifiers import CardUuid, ContainerName, PodUid
from vgpu.node.usage import gpu_time
from vgpu.node.usage.gpu_time import Balance, GpuTime, GpuTimes, Use

GPU = CardUuid("GPU-0")
A: Use = (PodUid("uid-a"), ContainerName("main"), GPU)
B: Use = (PodUid("uid-b"), ContainerName("main"), GPU)
OTHER = 9
UNKNOWN = 7
OWNERS: dict[tuple[CardUuid, int], Use | None] = {(GPU, 1): A, (GPU, 2): B, (GPU, OTHER): None}
S = 1_000_000


def samples(card: dict[int, float], processes: dict[int, dict[int, float]]) -> dict[CardUuid, BusySamples]:
    """Samples by second; `processes` by pid."""
    of_processes = tuple((pid, second * S, share) for pid, ends in processes.items() for second, share in ends.items())
    return {GPU: BusySamples(tuple((second * S, share) for second, share in card.items()), of_processes)}


def add(time: GpuTime, found: dict[CardUuid, BusySamples], turns: dict[Use, float]) -> None:
    """Take samples at the time at which the last one ends."""
    ends = [ended for _, ended, _ in found[GPU].processes] + [ended for ended, _ in found[GPU].card]
    time.add(found, OWNERS, turns, max(ends, default=0))


def test_a_container_without_turns_and_a_process_without_a_region_are_sampled() -> None:
    time = GpuTime()
    add(time, samples({10: 0.9}, {1: {10: 0.9}, 9: {10: 0.0}}), {A: 5.0})
    add(time, samples({11: 0.9, 12: 0.7}, {1: {11: 0.6, 12: 0.6}, 9: {11: 0.3, 12: 0.1}}), {A: 5.0})
    assert [time.card[GPU], time.containers[A], time.others[GPU]] == pytest.approx([1.6, 1.2, 0.4])


def test_turns_count_where_the_container_has_them() -> None:
    time = GpuTime()
    add(time, samples({10: 0.0}, {1: {10: 0.0}, 2: {10: 0.0}}), {A: 5.0, B: 1.0})
    add(time, samples({11: 1.0}, {1: {11: 0.42}, 2: {11: 0.61}}), {A: 5.4, B: 1.6})
    assert [time.containers[A], time.containers[B]] == pytest.approx([0.4, 0.6])
    assert [time.sampled[A], time.sampled[B]] == pytest.approx([0.42, 0.61])
    assert time.others == {}


def test_without_samples_of_the_card_its_processes_count() -> None:
    time = GpuTime()
    add(time, samples({}, {1: {10: 0.5}}), {})
    add(time, samples({}, {1: {11: 0.5}, 9: {11: 0.25}}), {})
    assert time.card[GPU] == pytest.approx(0.75)


def test_a_gap_in_the_samples_counts_two_seconds_at_most() -> None:
    time = GpuTime()
    add(time, samples({10: 1.0}, {}), {})
    add(time, samples({100: 1.0}, {}), {})
    assert time.card[GPU] == pytest.approx(2.0)


def test_a_region_that_goes_backwards_counts_nothing_and_a_container_that_is_gone_is_forgotten() -> None:
    time = GpuTime()
    add(time, samples({}, {}), {A: 5.0})
    add(time, {GPU: BusySamples()}, {A: 1.0})
    add(time, {GPU: BusySamples()}, {A: 1.5})
    assert time.containers == {A: pytest.approx(0.5)}
    time.forget({B[:2]})
    assert time.containers == time.sampled == {}


def test_samples_are_asked_for_from_the_earlier_of_both_ends() -> None:
    time = GpuTime()
    assert time.since([GPU]) == {GPU: 0}
    add(time, samples({12: 1.0}, {1: {11: 0.5}}), {})
    assert time.since([GPU, CardUuid("GPU-1")]) == {GPU: 11 * S, CardUuid("GPU-1"): 0}


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), max_size=6))
def test_counters_only_grow(steps: list[tuple[float, float]]) -> None:
    time, turns, before = GpuTime(), 0.0, 0.0
    for second, (share, turn) in enumerate(steps, 1):
        turns += turn
        add(time, samples({second: share}, {1: {second: share}}), {A: turns})
        assert time.containers[A] >= before
        before = time.containers[A]


def test_the_first_sample_of_a_process_is_a_second_long_at_most() -> None:
    time = GpuTime()
    add(time, samples({10: 0.0}, {}), {})
    add(time, samples({20: 0.0}, {9: {20: 0.5}}), {})
    assert time.others[GPU] == pytest.approx(0.5)


def contended(turns_s: float, sampled_s: float, others_s: float, card_s: float, seconds: int) -> list[list[float]]:
    """Return card, container and others after each second of a load; the samples are a second later than the turns."""
    time, found = GpuTime(), []
    for now in range(seconds + 2):
        ended = now - 1
        card, one, other = (full_s if ended > 0 else 0.0 for full_s in (card_s, sampled_s, others_s))
        sampled = samples({100 + ended: card}, {1: {100 + ended: one}, OTHER: {100 + ended: other}})
        time.add(sampled, OWNERS, {A: turns_s * min(now, seconds)}, (100 + now) * S)
        found.append([time.card[GPU], time.containers[A], time.others[GPU]])
    return found


def test_time_that_turns_and_another_process_both_counted_is_taken_off_the_turns() -> None:
    """As measured on an H100: fixed 30 beside a process without the limiter, 120 s."""
    after = contended(turns_s=0.3, sampled_s=0.244, others_s=0.827, card_s=0.996, seconds=120)
    card, container, others = after[-1]
    assert [card, others] == pytest.approx([119.5, 99.2], abs=0.1)
    assert container + others == pytest.approx(card, rel=0.01)
    for begin, end in zip(after, after[60:], strict=False):
        busy, *used = (now - before for now, before in zip(end, begin, strict=True))
        assert sum(used) == pytest.approx(busy, rel=0.01)


def test_a_container_alone_is_charged_at_most_half_a_second_more_than_the_card_was_busy() -> None:
    """As measured on an H100: one burst container for 120 s, whose samples are 1 % longer than the card's."""
    after = contended(turns_s=0.0, sampled_s=1.008, others_s=0.0, card_s=0.998, seconds=120)
    assert after[-1][1] == pytest.approx(119.8 + gpu_time.DEBT_S, abs=0.1)


def test_a_process_of_which_the_container_is_not_known_takes_no_turn_from_a_container() -> None:
    """It may be the container's own, and then its samples are the turns."""
    time = GpuTime()
    for now in range(100, 160):
        time.add(samples({now: 0.3}, {UNKNOWN: {now: 0.3}}), OWNERS, {A: 0.3 * (now - 99)}, now * S)
    assert time.containers[A] == pytest.approx(0.3 * 59)
    assert time.others[GPU] == pytest.approx(0.3 * 59)


def test_nothing_is_owed_for_the_time_in_which_a_process_was_unknown() -> None:
    balance = Balance()
    for now in range(100, 110):
        balance.corrected(0.3, GpuTimes({A: 0.3}, {None: 0.01}, unknown=0.3), now * S)
    assert balance.corrected(0.31, GpuTimes({A: 0.3}, {None: 0.01}), 110 * S).turns == {A: 0.3}


def test_turns_count_as_they_are_where_another_process_leaves_room_for_them() -> None:
    card, container, others = contended(turns_s=0.3, sampled_s=0.3, others_s=0.5, card_s=0.8, seconds=60)[-1]
    assert [card, container, others] == pytest.approx([48.0, 18.0, 30.0], abs=0.4)


def test_a_short_burst_beside_another_process_is_not_lost_to_the_lateness_of_samples() -> None:
    """Turns of 1 s every 10 s: their samples come when the turns have ended, and pay for the next ones."""
    balance, counted = Balance(), 0.0
    for now in range(100):
        turn, busy = float(now % 10 == 1), 0.05 + (now % 10 == 2)
        counted += balance.corrected(busy, GpuTimes({A: turn}, {None: 0.05}), now * S).turns[A]
    assert counted == pytest.approx(9.0)


def test_an_excess_is_shared_by_turns_in_proportion_before_any_sample_is_reduced() -> None:
    times = GpuTimes({A: 0.3, B: 0.1}, {None: 0.8})
    kept = times.without(0.2)
    assert kept.turns == pytest.approx({A: 0.15, B: 0.05})
    assert kept.sampled == times.sampled
    assert times.without(-1.0) == times


def test_samples_are_reduced_in_proportion_once_they_exceed_the_card_by_half_a_second() -> None:
    times = GpuTimes({A: 0.2}, {B: 1.0, None: 1.0})
    assert times.without(0.7).turns == {A: 0.0}
    assert times.without(0.7).sampled == pytest.approx({B: 1.0, None: 1.0})
    assert times.without(1.7).sampled == pytest.approx({B: 0.5, None: 0.5})


def test_busy_time_before_the_first_sample_of_another_process_is_kept_for_it() -> None:
    """NVML reports the card's busy time first: 0.5 s of it is unexplained when the process is first seen."""
    balance = Balance()
    balance.corrected(0.8, GpuTimes({A: 0.3}, {}), 100 * S)
    assert balance.corrected(0.8, GpuTimes({A: 0.3}, {None: 1.0}), 101 * S).turns == pytest.approx({A: 0.3})


def test_the_balance_is_forgotten_after_some_seconds_without_other_processes() -> None:
    balance = Balance()
    balance.corrected(0.0, GpuTimes({}, {None: 0.4}), 100 * S)
    assert balance.seconds == pytest.approx(-0.4)
    balance.corrected(0.0, GpuTimes({}, {}), 104 * S)
    assert balance.seconds == pytest.approx(-0.4)
    balance.corrected(0.3, GpuTimes({A: 0.3}, {}), 105 * S)
    assert balance.seconds == 0.0


def test_a_clock_that_is_set_back_ends_the_correction_until_another_process_is_seen_again() -> None:
    balance = Balance()
    balance.corrected(0.0, GpuTimes({}, {None: 0.4}), 5000 * S)
    assert balance.corrected(0.0, GpuTimes({A: 0.3}, {}), 100 * S).turns == {A: 0.3}


def test_busy_time_that_nothing_explains_is_a_credit_of_a_second_at_most() -> None:
    balance = Balance()
    for now in range(100, 110):
        balance.corrected(1.0, GpuTimes({}, {None: 0.1}), now * S)
    assert balance.seconds == gpu_time.CREDIT_S


SECONDS = st.floats(0, 1)
INTERVALS = st.lists(st.tuples(SECONDS, SECONDS, SECONDS, st.floats(0.01, 1), SECONDS), max_size=8)


@given(INTERVALS)
def test_beside_another_process_no_more_is_counted_than_the_card_was_busy(
    intervals: list[tuple[float, float, float, float, float]],
) -> None:
    """Any turns, samples and busy time: counters grow, and their sum exceeds the card's by the bound at most."""
    time, turns = GpuTime(), {A: 0.0, B: 0.0}
    add(time, samples({100: 0.0}, {1: {100: 0.0}, OTHER: {100: 0.0}}), turns)
    before = dict(time.containers), time.others[GPU]
    for now, (turn_a, turn_b, one, other, busy) in enumerate(intervals, 101):
        turns = {A: turns[A] + turn_a, B: turns[B] + turn_b}
        add(time, samples({now: busy}, {1: {now: one}, OTHER: {now: other}}), turns)
        assert all(time.containers[use] >= before[0][use] for use in turns)
        assert time.others[GPU] >= before[1]
        assert sum(time.containers.values()) + time.others[GPU] <= time.card[GPU] + gpu_time.DEBT_S + 1e-9
        before = dict(time.containers), time.others[GPU]


@given(st.lists(st.tuples(SECONDS, SECONDS), max_size=8))
def test_where_all_use_is_in_turns_every_turn_counts(steps: list[tuple[float, float]]) -> None:
    balance = Balance()
    for now, (turn, busy) in enumerate(steps, 100):
        times = GpuTimes({A: turn}, {B: 0.0})
        assert balance.corrected(busy, times, now * S) is times
        assert 0 <= balance.seconds <= gpu_time.CREDIT_S


@given(st.lists(st.tuples(SECONDS, SECONDS, SECONDS, st.none() | SECONDS, st.integers(1, 9)), max_size=8))
def test_the_balance_is_bounded(steps: list[tuple[float, float, float, float | None, int]]) -> None:
    balance, now = Balance(), 100
    for turn, sampled, other, busy, later in steps:
        now += later
        balance.corrected(busy, GpuTimes({A: turn}, {B: sampled, None: other}), now * S)
        assert -gpu_time.CREDIT_S <= balance.seconds <= gpu_time.CREDIT_S


def test_a_container_that_is_gone_is_forgotten_beside_another_process_too() -> None:
    time = GpuTime()
    add(time, samples({10: 0.0}, {1: {10: 0.0}, OTHER: {10: 0.0}}), {A: 1.0})
    add(time, samples({11: 1.0}, {1: {11: 0.5}, OTHER: {11: 0.8}}), {A: 1.5})
    time.forget(())
    assert time.containers == time.sampled == {}
    assert time.others[GPU] == pytest.approx(0.8)


def test_a_card_without_samples_of_its_own_is_busy_for_the_time_that_its_processes_samples_cover() -> None:
    """An interval without samples is followed by one with the samples of both."""
    time = GpuTime()
    add(time, samples({}, {1: {100: 0.0}, OTHER: {100: 0.0}}), {A: 1.0})
    time.add({GPU: BusySamples()}, OWNERS, {A: 1.3}, 101 * S)
    time.add(samples({}, {1: {101: 0.3, 102: 0.3}, OTHER: {101: 0.9, 102: 0.9}}), OWNERS, {A: 1.6}, 102 * S)
    assert [time.card[GPU], time.others[GPU]] == pytest.approx([2.0, 1.8])
    assert gpu_time.busy_by_processes([0.5], -1) == 0.0


def test_an_interval_without_a_sample_of_the_card_is_counted_when_the_next_one_comes() -> None:
    time = GpuTime()
    add(time, samples({100: 0.0}, {1: {100: 0.0}}), {})
    add(time, samples({}, {1: {101: 0.8}}), {})
    add(time, samples({102: 0.8}, {1: {102: 0.8}}), {})
    assert [time.card[GPU], time.containers[A]] == pytest.approx([1.6, 1.6])


def test_samples_count_again_after_a_clock_that_was_ahead() -> None:
    time, ahead = GpuTime(), 8_640_000
    add(time, samples({10: 0.5}, {1: {10: 0.5}}), {})
    add(time, samples({ahead: 0.5}, {1: {ahead: 0.5}}), {})
    time.add({GPU: BusySamples()}, OWNERS, {}, 12 * S)
    assert time.since([GPU])[GPU] <= 12 * S
    before = time.containers[A]
    add(time, samples({13: 0.5}, {1: {13: 0.5}}), {})
    add(time, samples({14: 0.5}, {1: {14: 0.5}}), {})
    assert time.containers[A] - before == pytest.approx(1.0, abs=0.01)


SERVER = 5
GROUPS = {(GPU, SERVER): (A, B)}


def of_group(found: dict[CardUuid, BusySamples], turns: dict[Use, float], time: GpuTime, now: int) -> None:
    time.add(found, {(GPU, SERVER): None, (GPU, OTHER): None}, turns, now * S, GROUPS)


def test_members_divide_their_servers_time_by_their_turns_which_overlap() -> None:
    """Each member had the card for most of the time; together they have what the server had."""
    time = GpuTime()
    for second in range(11):
        had = {A: 0.9 * second, B: 0.45 * second}
        of_group(samples({100 + second: 0.9}, {SERVER: {100 + second: 0.9}}), had, time, 100 + second)
    assert [time.containers[A], time.containers[B]] == pytest.approx([6.0, 3.0], rel=0.02)
    assert time.containers[A] + time.containers[B] == pytest.approx(time.card[GPU], rel=0.02)
    assert time.others == {}


def test_members_that_launch_without_turns_have_equal_parts() -> None:
    time = GpuTime()
    for second in range(11):
        of_group(samples({100 + second: 0.8}, {SERVER: {100 + second: 0.8}}), {A: 1.0}, time, 100 + second)
    assert [time.containers[A], time.containers[B]] == pytest.approx([4.0, 4.0])
    assert time.others == {}


def test_turns_of_members_count_once_the_servers_samples_come() -> None:
    """NVML's samples of a server come up to a second after its members' turns."""
    time = GpuTime()
    of_group(samples({100: 0.0}, {SERVER: {100: 0.0}}), {A: 1.0, B: 1.0}, time, 100)
    of_group(samples({101: 0.9}, {}), {A: 1.9, B: 1.1}, time, 101)
    assert [time.containers[A], time.containers[B]] == [0.0, 0.0]
    of_group(samples({102: 0.0}, {SERVER: {101: 0.9, 102: 0.0}}), {A: 1.9, B: 1.1}, time, 102)
    assert [time.containers[A], time.containers[B]] == pytest.approx([0.81, 0.09])


@settings(max_examples=20)
@given(st.randoms(use_true_random=False))
def test_members_and_others_together_are_within_two_percent_of_the_card(random: Random) -> None:
    time, turns = GpuTime(), {A: 0.0, B: 0.0}
    of_group(samples({100: 0.0}, {SERVER: {100: 0.0}, OTHER: {100: 0.0}}), turns, time, 100)
    for now in range(101, 161):
        card = random.random()
        group = card * random.random()
        turns = {use: had + group * random.random() for use, had in turns.items()}
        of_group(samples({now: card}, {SERVER: {now: group}, OTHER: {now: card - group}}), turns, time, now)
    total = sum(time.containers.values()) + time.others.get(GPU, 0.0)
    assert abs(total - time.card[GPU]) <= 0.02 * time.card[GPU]
