"""Which names Kubernetes' objects can have."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vgpu.domain import object_names

ENDS = set("abcdefghijklmnopqrstuvwxyz0123456789")
TEXTS = st.text("a0-.", max_size=8) | st.text(max_size=4) | st.text("a", min_size=60, max_size=66)


def is_part(text: str) -> bool:
    return bool(text) and {text[0], text[-1]} <= ENDS and set(text) <= ENDS | {"-"}


@given(TEXTS)
def test_a_label_is_one_part_of_at_most_63_characters(text: str) -> None:
    assert object_names.is_label(text) == (is_part(text) and len(text) <= 63)


@given(TEXTS | st.lists(TEXTS, max_size=6).map(".".join))
def test_a_subdomain_is_parts_between_dots_of_at_most_253_characters(text: str) -> None:
    assert object_names.is_subdomain(text) == (all(map(is_part, text.split("."))) and len(text) <= 253)


@pytest.mark.parametrize(
    ("text", "is_label", "is_subdomain"),
    [
        ("0", True, True),
        ("train-1", True, True),
        ("x" * 63, True, True),
        ("x" * 64, False, True),
        ("train-1.x", False, True),
        ("x" * 253, False, True),
        ("x" * 254, False, False),
        ("a" * 126 + "." + "b" * 126, False, True),
        ("a" * 126 + "." + "b" * 127, False, False),
        ("", False, False),
        ("a\n", False, False),
        ("x" * 253 + "\n", False, False),
        ("A", False, False),
        ("a_b", False, False),
        ("\u0661", False, False),
        ("-a", False, False),
        ("a-", False, False),
        ("a.-b", False, False),
        ("a..b", False, False),
        ("..", False, False),
        (".", False, False),
        ("a/b", False, False),
    ],
)
def test_names_at_the_edges_of_the_rules(text: str, *, is_label: bool, is_subdomain: bool) -> None:
    assert (object_names.is_label(text), object_names.is_subdomain(text)) == (is_label, is_subdomain)


@given(TEXTS.filter(lambda text: "\n" not in text))
def test_a_schema_with_the_pattern_takes_what_the_function_takes(text: str) -> None:
    """JSON schemas search; their `$` is the end of the text, where Python's stands before a last line feed too."""
    assert (re.search(object_names.LABEL, text) is not None) == object_names.is_label(text)
    assert (re.search(object_names.SUBDOMAIN, text) is not None) == object_names.is_subdomain(text)
