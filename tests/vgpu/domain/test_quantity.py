"""Amounts: parsing and printing."""

import contextlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vgpu.domain import quantity


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("8192", 8192), (512, 512), ("18k", 18000), ("1e3", 1000), ("1E3", 1000), ("2M", 2_000_000), ("-1", -1),
        ("0", 0), ("1e9", 10**9), ("16Gi", None), ("1500m", None), ("1.5", None), ("", None), ("x", None),
        ("\u0661", None), ("1e", None), (" 1", None), ("9" * 19, None), ("1e999", None),
    ],
)  # fmt: skip
def test_whole_number(text: str | int, value: int | None) -> None:
    assert quantity.whole_number(text) == value


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("8GiB", 8 << 30), ("8Gi", 8 << 30), ("8192", 8 << 30), ("512MiB", 512 << 20), ("512Mi", 512 << 20),
        ("1.5Gi", 3 << 29), ("8G", None), ("8GB", None), ("-1Gi", None), ("", None), ("Gi", None), ("0", 0),
    ],
)  # fmt: skip
def test_size_bytes(text: str, size: int | None) -> None:
    assert quantity.size_bytes(text) == size


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("8", "'8' is 8 MiB, too little for a CUDA program; write 8Gi or 8Mi"),
        ("0", "would refuse every allocation"), ("0Gi", "would refuse every allocation"),
        ("8B", "write 8Gi, 512Mi, or MiB"), ("8192 B", "write 8Gi, 512Mi, or MiB"),
        ("8G", "write 8Gi"), ("1.5 gb", "write 1.5Gi"), ("512m", "write 512Mi"), ("x" * 9999, "(9999 characters)"),
        ("999999Gi", "more than any card has; the most is 16384Gi"),
    ],
)  # fmt: skip
def test_a_limit_that_is_most_likely_a_mistake_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)):
        quantity.limit_bytes(text)


@pytest.mark.parametrize("text", ["64", "8Mi", "1.5GiB", "16384Gi"])
def test_other_limits_are_those_of_the_grammar(text: str) -> None:
    assert quantity.limit_bytes(text) == quantity.size_bytes(text)


@given(st.integers(0, 10**17))
def test_a_plain_number_is_itself(number: int) -> None:
    assert quantity.whole_number(str(number)) == number


@given(st.text())
def test_any_text_is_parsed_or_refused(text: str) -> None:
    quantity.whole_number(text)
    quantity.size_bytes(text)
    with contextlib.suppress(ValueError):
        assert quantity.limit_bytes(text) > 0


@pytest.mark.parametrize(
    ("mib", "words"),
    [(0, "0 MiB"), (512, "512 MiB"), (8192, "8 GiB"), (5632, "5.5 GiB"), (8448, "8.25 GiB"), (8190, "8190 MiB"),
     (10_240, "10 GiB"), (102_400, "100 GiB"), (81_559, "81559 MiB")],
)  # fmt: skip
def test_human_mib(mib: int, words: str) -> None:
    assert quantity.human_mib(mib) == words


@given(st.integers(0, quantity.MAX_MIB), st.integers(-2000, 2000))
def test_amounts_that_differ_read_differently(mib: int, more: int) -> None:
    other = max(0, mib + more)
    assert (quantity.human_mib(mib) == quantity.human_mib(other)) == (mib == other)
