"""Whether a running program should share its card, and beside what. Pure.

Programs fit together on a card if the sum of what they use is less than the card's time. A program that keeps a card
busy all the time loses speed beside any other program. A program that waits for its own share gets no advice: its use
does not show what it would use without the limit.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from vgpu.workloads.diagnose.catalogue import FindingCode
from vgpu.workloads.diagnose.period import Period

BUSY: Final = 0.80  # share of the time from which on a neighbour costs what it uses
FULL: Final = 0.95  # of the time, for all programs of a card together
_NAMED: Final = 3  # programs that a sentence names


def advice(seen: Period, codes: frozenset[FindingCode] = frozenset(), beside: Iterable[str] = ()) -> str:
    """Return one sentence; empty where it is not known how much the program would use.

    `codes`: what was found. A program that waits for turns or for its share would use more than it does. `beside`:
    names of other programs that fit on its card.
    """
    if not _is_use_known(seen, codes):
        return ""
    if FindingCode.ONE_KERNEL in codes:
        return "its kernels use few multiprocessors: of the card's time it takes all, of the card little"
    if seen.used >= BUSY:
        return f"it keeps the card busy {seen.used:.0%} of the time: do not share the card"
    named = list(beside)[:_NAMED]
    return (
        f"it uses {seen.used:.0%} of the card's time: programs of up to {FULL - seen.used:.0%} together fit beside it"
        + (f", such as {', '.join(named)}" if named else "")
    )


def may_share(seen: Period, codes: frozenset[FindingCode]) -> bool:
    """Return whether it is known how much of a card's time a program needs, and that leaves room for others."""
    return _is_use_known(seen, codes) and FindingCode.ONE_KERNEL not in codes and seen.used < BUSY


def together(used: Mapping[str, float]) -> dict[str, list[str]]:
    """Return beside which other programs each one fits on a card, those first that use most of it.

    `used`: shares of a card's time, 0 to 1, by name.
    """
    largest_first = sorted(used, key=lambda name: (-used[name], name))
    return {
        name: [other for other in largest_first if other != name and used[name] + used[other] <= FULL] for name in used
    }


def _is_use_known(seen: Period, codes: frozenset[FindingCode]) -> bool:
    return seen.is_known and not codes & {FindingCode.SHARE_USED_UP, FindingCode.WAITS_FOR_TURNS}
