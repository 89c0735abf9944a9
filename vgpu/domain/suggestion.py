"""Words for a name that is not known: the known one that it resembles, or all of them."""

import difflib
from collections.abc import Collection

_ALIKE = 0.6  # of difflib's ratio; its own default


def instead_of(name: str, known: Collection[str]) -> str:
    """Return "did you mean NAME?", or "known: " and all names where none resembles it."""
    nearest = difflib.get_close_matches(name, known, n=1, cutoff=_ALIKE)
    return f"did you mean {nearest[0]}?" if nearest else f"known: {', '.join(known)}"
