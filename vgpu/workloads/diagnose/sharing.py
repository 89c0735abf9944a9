"""Whether a running program should share its card, and beside what. Pure.

Programs fit together on a card if the sum of what they use is less than the card's time. A program that keeps a card
busy all the time loses speed beside any other program. A program that waits for its own share gets no advice: its use
does not show what it would use without the limit.
"""

from typing import Final

from vgpu.workloads.diagnose.catalogue import Code
from vgpu.workloads.diagnose.period import Period

BUSY: Final = 0.80  # share of the time from which on a neighbour costs what it uses
FULL: Final = 0.95  # of the time, for all programs of a card together


def advice(seen: Period, codes: frozenset[Code] = frozenset()) -> str:
    """Return one sentence; empty where it is not known how much the program would use.

    `codes`: what was found. A program that waits for turns or for its share would use more than it does.
    """
    if not seen.is_known or codes & {Code.SHARE_USED_UP, Code.WAITS_FOR_TURNS}:
        return ""
    if Code.ONE_KERNEL in codes:
        return "its kernels use few multiprocessors: of the card's time it takes all, of the card little"
    if seen.used >= BUSY:
        return f"it keeps the card busy {seen.used:.0%} of the time: do not share the card"
    return (
        f"it uses {seen.used:.0%} of the card's time: programs of up to {FULL - seen.used:.0%} together fit beside it"
    )
