"""Files that are nearly right: valid ones with a few bytes changed, as they come from a broken disk or an attacker."""

from typing import NamedTuple

from hypothesis import strategies as st

PIECES = (
    b"",
    b"\x00",
    b"\xff",
    b"\x80\x80",
    b"null",
    b"-1",
    b"1e999",
    b"9" * 20,
    b"[]",
    b"{}",
    b'"',
    b"(" * 40,
    b"\n ",
    b"x" * 99,
)


class Edit(NamedTuple):
    """Bytes that are replaced: from a part of the file on (0 to 1), this many, by a piece, this often."""

    at: float
    length: int
    piece: bytes
    times: int


EDITS = st.builds(
    Edit, st.floats(0, 1), st.integers(0, 40), st.sampled_from(PIECES) | st.binary(max_size=3), st.integers(1, 9)
)


def of(*valid: bytes) -> st.SearchStrategy[bytes]:
    """Return one of these files after up to six edits."""
    return st.builds(_edited, st.sampled_from(valid), st.lists(EDITS, min_size=1, max_size=6))


def _edited(data: bytes, edits: list[Edit]) -> bytes:
    for edit in edits:
        begin = round(edit.at * len(data))
        data = data[:begin] + edit.piece * edit.times + data[begin + edit.length :]
    return data
