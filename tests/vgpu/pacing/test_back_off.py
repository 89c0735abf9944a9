"""Back-off: the delays after failures in a row."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vgpu.pacing.back_off import BackOff

unit = st.floats(0, 1)
failure_counts = st.integers(1, 10_000_000)


@st.composite
def back_offs(draw: st.DrawFn, *, jitter: st.SearchStrategy[float] = unit) -> BackOff:
    first_s = draw(st.floats(0.001, 1000))
    return BackOff(first_s, first_s * draw(st.floats(1, 10_000)), draw(st.floats(1, 10)), draw(jitter))


def test_the_delay_doubles_up_to_the_longest() -> None:
    back_off = BackOff(0.1, 5.0)
    assert [back_off.delay_s(failures) for failures in range(1, 9)] == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]


@pytest.mark.parametrize(("random", "delay_s"), [(0.0, 1.0), (0.5, 1.5), (1.0, 2.0)])
def test_half_of_the_delay_is_random_with_a_jitter_of_a_half(random: float, delay_s: float) -> None:
    assert BackOff(1.0, 60.0, jitter=0.5).delay_s(2, random) == delay_s


@given(back_offs(jitter=st.just(0.0)))
def test_the_first_delay_is_the_first_delay_of_the_schedule(back_off: BackOff) -> None:
    assert back_off.delay_s(1) == back_off.first_s


@given(back_offs(), failure_counts, unit)
def test_no_delay_leaves_the_bounds(back_off: BackOff, failures: int, random: float) -> None:
    """Not even after a number of failures whose power is larger than a float."""
    least_s = back_off.first_s * (1 - back_off.jitter)
    assert least_s * (1 - 1e-9) - 1e-12 <= back_off.delay_s(failures, random) <= back_off.longest_s


@given(back_offs(), failure_counts, unit)
def test_one_more_failure_never_shortens_the_delay(back_off: BackOff, failures: int, random: float) -> None:
    assert back_off.delay_s(failures, random) <= back_off.delay_s(failures + 1, random)


@given(back_offs(jitter=st.just(0.0)), st.integers(1, 30))
def test_the_delay_grows_by_the_factor_until_the_longest(back_off: BackOff, failures: int) -> None:
    before_s, after_s = back_off.delay_s(failures), back_off.delay_s(failures + 1)
    assert after_s == pytest.approx(min(back_off.longest_s, before_s * back_off.factor))


@given(back_offs(), failure_counts, unit, unit)
def test_a_larger_random_number_never_shortens_the_delay(
    back_off: BackOff, failures: int, one: float, other: float
) -> None:
    low, high = sorted((one, other))
    assert back_off.delay_s(failures, low) <= back_off.delay_s(failures, high)
