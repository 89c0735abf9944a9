"""Durations as kubectl writes them."""

from datetime import UTC, datetime, timedelta

import pytest

from vgpu.simulator.api import ages

MINUTE, HOUR, DAY = 60, 3600, 86_400


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "0s"), (0, "0s"), (119, "119s"), (120, "2m"), (330, "5m30s"), (10 * MINUTE, "10m"), (179 * MINUTE, "179m"),
        (3 * HOUR, "3h"), (200 * MINUTE, "3h20m"), (30 * HOUR, "30h"), (2 * DAY, "2d"), (53 * HOUR, "2d5h"),
        (9 * DAY + HOUR, "9d"),
    ],
)  # fmt: skip
def test_durations(seconds: int, text: str) -> None:
    assert ages.human(seconds) == text


def test_an_age_counts_from_a_timestamp_and_is_unknown_without_one() -> None:
    now = datetime(2026, 11, 22, 12, 0, 0, tzinfo=UTC)
    stamp = (now - timedelta(seconds=90)).isoformat()
    assert [ages.age(created, now) for created in (stamp, None, "yesterday")] == ["90s", "<unknown>", "<unknown>"]
