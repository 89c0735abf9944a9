"""XID errors: what each code means, and whether it says something about the card. Pure.

The codes and their meanings: https://docs.nvidia.com/deploy/xid-errors/ . Codes that the table lacks are of the card.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Cause(StrEnum):
    """What an XID is about."""

    APPLICATION = "application"  # a fault of a program, which ends it: the card is as good as before
    NOTICE = "notice"  # the card has repaired itself, or asks for service later
    CARD = "card"  # the card may fail again, or needs a reset


@dataclass(frozen=True, slots=True)
class XidMeaning:
    """The meaning of a code."""

    cause: Cause
    text: str


_A, _N, _C = Cause.APPLICATION, Cause.NOTICE, Cause.CARD

TABLE: Final = {
    13: XidMeaning(_A, "graphics engine exception"),
    31: XidMeaning(_A, "memory page fault"),
    32: XidMeaning(_A, "invalid or corrupted push buffer stream"),
    43: XidMeaning(_A, "the GPU stopped processing for a program"),
    44: XidMeaning(_C, "graphics engine fault during a context switch"),
    45: XidMeaning(_A, "preemptive cleanup after an earlier error"),
    48: XidMeaning(_C, "double-bit ECC error"),
    61: XidMeaning(_C, "internal microcontroller breakpoint or warning"),
    62: XidMeaning(_C, "internal microcontroller halt"),
    63: XidMeaning(_N, "a page retirement or row remapping was recorded"),
    64: XidMeaning(_C, "a page retirement or row remapping could not be recorded"),
    68: XidMeaning(_A, "video processor exception"),
    69: XidMeaning(_A, "graphics engine class error"),
    74: XidMeaning(_C, "NVLink error"),
    79: XidMeaning(_C, "the GPU has fallen off the bus"),
    92: XidMeaning(_N, "high rate of single-bit ECC errors"),
    94: XidMeaning(_A, "contained memory error"),
    95: XidMeaning(_C, "uncontained memory error"),
    109: XidMeaning(_A, "context switch timeout"),
    110: XidMeaning(_C, "security fault"),
    119: XidMeaning(_C, "timeout of a call of the GPU's system processor (GSP)"),
    120: XidMeaning(_C, "error of the GPU's system processor (GSP)"),
    121: XidMeaning(_C, "corrected error of the chip-to-chip link"),
    122: XidMeaning(_C, "SPI read failure of the power unit"),
    123: XidMeaning(_C, "SPI command failure of the power unit"),
    136: XidMeaning(_C, "training of a link failed"),
    137: XidMeaning(_A, "NVLink privilege error"),
    140: XidMeaning(_C, "unrecovered ECC error"),
    143: XidMeaning(_C, "initialization of the GPU failed"),
}


def cause(code: int) -> Cause:
    """Return what a code is about."""
    return TABLE[code].cause if code in TABLE else Cause.CARD


def describe(fault: str) -> str:
    """Return a fault with its meaning where the fault is an XID of the table: `Xid79 (the GPU has ...)`."""
    number = fault.removeprefix("Xid")
    if number == fault or not number.isdigit() or int(number) not in TABLE:
        return fault
    return f"{fault} ({TABLE[int(number)].text})"
