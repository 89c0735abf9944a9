"""What a container should ask for, from what it has used."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vgpu.domain.asks import right_size
from vgpu.domain.asks.right_size import LEAST_MINUTES, AskedShare
from vgpu.domain.cards import measured_use

HOUR_MS = 3_600_000


def minutes(*percents: int) -> list[int]:
    levels = [0] * measured_use.LEVELS
    for percent in percents:
        levels[measured_use.level_of(percent)] += 1
    return levels


@pytest.mark.parametrize(
    ("asked", "percents", "peak", "expected"),
    [
        (AskedShare(16384, 60), [5] * 57 + [20] * 3, 5000, (15, 5888)),
        (AskedShare(16384, 60), [50] * 60, 15000, (None, None)),
        (AskedShare(16384, 60), [58] * 60, 15000, (70, None)),  # its share is the limit
        (AskedShare(16384, 100), [100] * 60, 15000, (None, None)),
        (AskedShare(16384, None), [100] * 60, 0, (None, None)),  # no guaranteed time was asked for
        (AskedShare(81920, 100, whole=True), [1] * 60, 500, (None, None)),
        (AskedShare(16384, 60), [1] * 59, 10, (None, None)),  # too short
        (AskedShare(512, 60), [0] * 60, 1, (10, 256)),
    ],
)
def test_advice(asked: AskedShare, percents: list[int], peak: int, expected: tuple[int | None, int | None]) -> None:
    found = right_size.right_size(asked, minutes(*percents), 1000, HOUR_MS, peak)
    assert (found.cores, found.memory_mib) == expected
    assert found.is_enough == (len(percents) >= LEAST_MINUTES)  # else it is not known whether the request is right


@given(
    st.integers(1, 100),
    st.lists(st.integers(0, 100), min_size=LEAST_MINUTES, max_size=80),
    st.integers(1, 81920),
    st.integers(1, 81920),
)
def test_who_follows_the_advice_gets_no_more_advice_and_has_enough(
    cores: int, percents: list[int], mib: int, peak: int
) -> None:
    peak = min(peak, mib)
    levels = minutes(*percents)
    found = right_size.right_size(AskedShare(mib, cores), levels, 0, HOUR_MS, peak)
    followed = AskedShare(found.memory_mib or mib, found.cores or cores)
    again = right_size.right_size(followed, levels, 0, HOUR_MS, peak)
    assert (again.cores, again.memory_mib) == (None, None)
    assert followed.memory_mib >= peak


@pytest.mark.parametrize(
    ("asked", "mean", "unused"),
    [
        (AskedShare(1, 60), 15, 45),
        (AskedShare(1, 60), 80, 0),
        (AskedShare(1), 10, 0),
        (AskedShare(1, None, whole=True), 30, 70),
    ],
)
def test_guaranteed_time_that_is_not_used(asked: AskedShare, mean: int, unused: int) -> None:
    found = right_size.right_size(asked, [], mean * HOUR_MS // 100, HOUR_MS, 0)
    assert right_size.unused_s(asked, found, 100.0) == pytest.approx(unused)
