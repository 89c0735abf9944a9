"""Bodies of any length in chunks of any sizes, with and without a true length in the request."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vgpu.adapters import http_body
from vgpu.adapters.http_body import Body


async def arriving(chunks: list[bytes]) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


@given(st.lists(st.binary(max_size=5), max_size=8), st.integers(0, 20), st.booleans(), st.integers(1, 4))
def test_a_body_up_to_the_limit_is_whole_and_of_a_longer_one_the_beginning_is_kept(
    chunks: list[bytes], limit: int, says_length: bool, beginning: int
) -> None:
    body = b"".join(chunks)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(http_body, "BEGINNING", beginning)
        found = asyncio.run(http_body.read(arriving(chunks), limit, str(len(body)) if says_length else None))
    assert found == (Body(body) if len(body) <= limit else Body(body[:beginning], is_too_long=True))


def test_a_body_that_is_said_to_be_too_long_is_not_taken_for_a_whole_one() -> None:
    assert asyncio.run(http_body.read(arriving([b"abc"]), 3, "4")) == Body(b"abc", is_too_long=True)


@pytest.mark.parametrize("length", ["-1", "x", "9" * 5000, "٣", "1e9"])
def test_a_length_that_is_no_number_is_not_believed(length: str) -> None:
    assert asyncio.run(http_body.read(arriving([b"abc"]), 3, length)) == Body(b"abc")
