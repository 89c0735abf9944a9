"""The longest turns that suit a program's steps."""

import ctypes

import pytest

from tests.limiter.compute.turn_structures import MS, U64


@pytest.mark.parametrize(
    ("backlog", "step", "longest"),
    [
        (0, 0, 0),
        (8 * MS, 0, 4 * MS),
        (0, 120 * MS, 10 * MS),
        (0, 2 * MS, 5 * MS),
        (8 * MS, 120 * MS, 4 * MS),
        (40 * MS, 120 * MS, 10 * MS),
    ],
)
def test_turns_are_shorter_than_the_steps_that_wait_for_them(
    compute: ctypes.CDLL, backlog: int, step: int, longest: int
) -> None:
    """Half of what the host keeps ahead of the card; a twelfth of a step, at least 5 ms; the shorter one of both."""
    assert compute.suitable_turn(U64(backlog), U64(step)) == longest
