"""Durations as kubectl writes them: `45s`, `5m30s`, `3h20m`, `4d`."""

from datetime import datetime
from typing import Any, Final

_MINUTE: Final = 60
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR
# Below a number of seconds: the larger unit and the smaller one, 0 where none is written.
# https://github.com/kubernetes/apimachinery/blob/v0.36.0/pkg/util/duration/duration.go (HumanDuration)
_STEPS: Final = (
    (2 * _MINUTE, 1, 0),
    (10 * _MINUTE, _MINUTE, 1),
    (3 * _HOUR, _MINUTE, 0),
    (8 * _HOUR, _HOUR, _MINUTE),
    (2 * _DAY, _HOUR, 0),
    (8 * _DAY, _DAY, _HOUR),
)
_LETTERS: Final = {1: "s", _MINUTE: "m", _HOUR: "h", _DAY: "d"}


def age(stamp: Any, now: datetime) -> str:
    """Return the time since a timestamp of an object; `<unknown>` where it is missing or cannot be read."""
    try:
        return human(int((now - datetime.fromisoformat(stamp)).total_seconds()))
    except (TypeError, ValueError):
        return "<unknown>"


def human(seconds: int) -> str:
    """Return a duration; one in the future, by clocks that differ, is `0s`."""
    whole = max(0, seconds)
    for limit, large, small in _STEPS:
        if whole < limit:
            return _written(whole, large, small)
    return _written(whole, _DAY, 0)


def _written(seconds: int, large: int, small: int) -> str:
    text = f"{seconds // large}{_LETTERS[large]}"
    rest = seconds % large // small if small else 0
    return f"{text}{rest}{_LETTERS[small]}" if rest else text
