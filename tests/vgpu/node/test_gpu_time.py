"""GPU seconds of containers, other processes and cards, from NVML's samples and from turns."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vgpu.adapters.nvml.records import BusySamples
from vgpu.node import gpu_time
from vgpu.node.gpu_time import GpuTime, Use

GPU = "GPU-0"
A: Use = ("uid-a", "main", GPU)
B: Use = ("uid-b", "main", GPU)
OWNERS = {(GPU, 1): A, (GPU, 2): B}
S = 1_000_000


def samples(card: dict[int, float], processes: dict[int, dict[int, float]]) -> dict[str, BusySamples]:
    """Samples by second; `processes` by pid."""
    each = tuple((pid, second * S, share) for pid, ends in processes.items() for second, share in ends.items())
    return {GPU: BusySamples(tuple((second * S, share) for second, share in card.items()), each)}


def add(time: GpuTime, found: dict[str, BusySamples], turns: dict[Use, float]) -> None:
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
    time.forget([B])
    assert time.containers == time.sampled == {}


def test_samples_are_asked_for_from_the_earlier_of_both_ends() -> None:
    time = GpuTime()
    assert time.since([GPU]) == {GPU: 0}
    add(time, samples({12: 1.0}, {1: {11: 0.5}}), {})
    assert time.since([GPU, "GPU-1"]) == {GPU: 11 * S, "GPU-1": 0}


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), max_size=6))
def test_counters_only_grow(steps: list[tuple[float, float]]) -> None:
    time, turns, before = GpuTime(), 0.0, 0.0
    for second, (share, turn) in enumerate(steps, 1):
        turns += turn
        add(time, samples({second: share}, {1: {second: share}}), {A: turns})
        assert time.containers[A] >= before
        before = time.containers[A]


@given(st.floats(0, 5), st.floats(0, 5))
def test_the_time_used_is_that_of_the_turns_or_of_the_samples(turns: float, sampled: float) -> None:
    assert gpu_time.used(turns, sampled) == (turns or sampled)


def test_the_first_sample_of_a_process_is_a_second_long_at_most() -> None:
    time = GpuTime()
    add(time, samples({10: 0.0}, {}), {})
    add(time, samples({20: 0.0}, {9: {20: 0.5}}), {})
    assert time.others[GPU] == pytest.approx(0.5)
