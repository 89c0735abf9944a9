"""The pause after an attempt that failed, doubled with each failure that follows."""

from typing import Final

MOST_DOUBLINGS: Final = 30  # a gang may wait for months, and a float ends at 2 ** 1024


def pause_s(first_s: float, longest_s: float, failures: int) -> float:
    """Return the seconds to wait after `failures`, at least one, in a row."""
    return min(longest_s, first_s * 2.0 ** min(MOST_DOUBLINGS, failures - 1))
