"""JSON text is cut at a depth, whatever its strings contain."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vgpu.domain.formats import json_depth

TEXT = st.text(st.sampled_from('ab"\\{}[],:é\n'), max_size=6)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=30,
)


def cut(value: Any, depth: int) -> Any:
    """The naive twin: recursion on decoded values."""
    if not isinstance(value, list | dict):
        return value
    if depth == 0:
        return None
    if isinstance(value, list):
        return [cut(part, depth - 1) for part in value]
    return {key: cut(part, depth - 1) for key, part in value.items()}


@given(JSON, st.integers(1, 4), st.sampled_from([None, 1]))
def test_values_deeper_than_the_limit_become_null(value: Any, depth: int, indent: int | None) -> None:
    text = json.dumps(value, indent=indent).encode()
    assert json.loads(json_depth.shallow(text, depth)) == cut(value, depth)


@given(JSON, st.integers(1, 4), st.data())
def test_text_that_ends_too_early_stays_malformed(value: Any, depth: int, data: st.DataObject) -> None:
    text = json.dumps([value]).encode()
    end = data.draw(st.integers(0, len(text) - 1))
    with pytest.raises(ValueError):  # noqa: PT011 - json's own
        json.loads(json_depth.shallow(text[:end], depth))


@given(st.text(st.sampled_from('"\\{}[]a'), max_size=20))
def test_text_that_is_not_deep_is_not_changed(text: str) -> None:
    assert json_depth.shallow(text.encode(), 20) == text.encode()


@pytest.mark.parametrize("text", [b"[" * 1_000_000, b'{"a":' * 300_000, b'"' * 1_000_001, b'"' + b'\\"' * 500_000])
def test_a_megabyte_of_hostile_text_is_cut_in_linear_time(text: bytes) -> None:
    assert len(json_depth.shallow(text)) <= len(text) + 4


def test_an_object_of_ten_thousand_levels_is_cut() -> None:
    deep = b'{"a":' * 10_000 + b"1" + b"}" * 10_000
    text = b'{"metadata": {"managedFields": [' + deep + b'], "name": "x}"}, "spec": {"nodeName": "n"}}'
    found = json.loads(json_depth.shallow(text))
    assert (found["metadata"]["name"], found["spec"]) == ("x}", {"nodeName": "n"})
