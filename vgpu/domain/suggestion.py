"""Words for a name that is not known: the known one that it resembles, or all of them."""

import difflib
from collections.abc import Collection
from typing import Final

ALIKE: Final = 0.6  # of difflib's ratio; its own default
CLOSE: Final = 0.8  # for names that may mean something else: `gpumem` and `gpu-memory` are this close to `gpu-mem`


def instead_of(name: str, known: Collection[str]) -> str:
    """Return "did you mean NAME?", or "known: " and all names where none resembles it.

    A domain that all of them have says nothing: `vgpu.io/bogus` does not resemble `vgpu.io/gang`.
    """
    resembled = nearest(name, known)
    return f"did you mean {resembled}?" if resembled else f"known: {', '.join(known)}"


def nearest(name: str, known: Collection[str], cutoff: float = ALIKE) -> str | None:
    """Return the known name that a name resembles most, in any case of letters; None where none does.

    `cutoff` is the least of difflib's ratio, 0 to 1.
    """
    domain, slash, _ = name.partition("/")
    prefix = domain + slash if slash and all(other.startswith(domain + slash) for other in known) else ""
    by_folded = {other.removeprefix(prefix).lower(): other for other in known}
    found = difflib.get_close_matches(name.removeprefix(prefix).lower(), by_folded, n=1, cutoff=cutoff)
    return by_folded[found[0]] if found else None
