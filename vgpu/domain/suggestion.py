"""Words for a name that is not known: the known one that it resembles, or all of them."""

import difflib
from collections.abc import Collection

_ALIKE = 0.6  # of difflib's ratio; its own default


def instead_of(name: str, known: Collection[str]) -> str:
    """Return "did you mean NAME?", or "known: " and all names where none resembles it.

    A domain that all of them have says nothing: `vgpu.io/bogus` does not resemble `vgpu.io/gang`.
    """
    domain, slash, _ = name.partition("/")
    prefix = domain + slash if slash and all(other.startswith(domain + slash) for other in known) else ""
    names = [other.removeprefix(prefix) for other in known]
    nearest = difflib.get_close_matches(name.removeprefix(prefix), names, n=1, cutoff=_ALIKE)
    return f"did you mean {prefix}{nearest[0]}?" if nearest else f"known: {', '.join(known)}"
