"""The GPU time of a program's own kernels in a trace with other programs' time slices."""

import pytest

from benchmarks.gpu_time.kernel_times import KernelTimes, own_times

US = 1000


def trace(*durations_us: int) -> list[tuple[int, int]]:
    at, spans = 0, []
    for us in durations_us:
        spans.append((at, at + us * US))
        at += us * US + 500
    return spans


def test_a_kernel_that_is_interrupted_counts_as_the_others_at_its_place() -> None:
    request = (10, 40, 20)
    found = own_times(trace(*request * 4, 10, 4040, 20, *request * 5), 10)
    assert found.own_s == pytest.approx(10 * 70e-6)
    assert (found.slices_s, found.interrupted) == (4000e-6, 1)


def test_kernels_of_other_lengths_at_other_places_are_no_interruptions() -> None:
    found = own_times(trace(*(10, 100) * 6), 6)
    assert (found.own_s, found.slices_s, found.interrupted) == (660e-6, 0.0, 0)


def test_nothing_is_taken_off_where_kernels_do_not_repeat() -> None:
    assert own_times(trace(10, 10, 5000), 2).slices_s == 0
    assert own_times(trace(10, 5000), 0) == KernelTimes(5010e-6, 0.5e-6, 0.0, 0)


def test_pauses_count_where_the_next_kernel_has_been_launched() -> None:
    found = own_times([(0, 10 * US), (13 * US, 20 * US), (24 * US, 30 * US)], 1)
    assert found.gpu_s == pytest.approx(
        26e-6
    )  # 23 of kernels and 3 of the first pause; in the second the host was late
