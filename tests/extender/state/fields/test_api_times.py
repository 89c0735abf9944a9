"""Times of Kubernetes objects, and what users may write in their place."""

import pytest

from extender.state.fields import api_times


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("1970-01-01T00:00:09Z", 9_000),
        ("1970-01-01T01:00:09.5+01:00", 9_500),
        ("soon", 0),
        (None, 0),
        (9, 0),
        (["1970-01-01T00:00:09Z"], 0),
    ],
)
def test_milliseconds(value: object, expected: int) -> None:
    assert api_times.milliseconds(value) == expected


def test_long_texts_are_not_kept() -> None:
    api_times._parsed.cache_clear()
    assert api_times.milliseconds("1970-01-01T00:00:09Z" + " " * 1_000) == 0
    assert api_times._parsed.cache_info().currsize == 0
