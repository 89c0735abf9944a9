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
class Code:
    """The meaning of a code."""

    cause: Cause
    text: str


_A, _N, _C = Cause.APPLICATION, Cause.NOTICE, Cause.CARD

TABLE: Final = {
    13: Code(_A, "graphics engine exception"),
    31: Code(_A, "memory page fault"),
    32: Code(_A, "invalid or corrupted push buffer stream"),
    43: Code(_A, "the GPU stopped processing for a program"),
    44: Code(_C, "graphics engine fault during a context switch"),
    45: Code(_A, "preemptive cleanup after an earlier error"),
    48: Code(_C, "double-bit ECC error"),
    61: Code(_C, "internal microcontroller breakpoint or warning"),
    62: Code(_C, "internal microcontroller halt"),
    63: Code(_N, "a page retirement or row remapping was recorded"),
    64: Code(_C, "a page retirement or row remapping could not be recorded"),
    68: Code(_A, "video processor exception"),
    69: Code(_A, "graphics engine class error"),
    74: Code(_C, "NVLink error"),
    79: Code(_C, "the GPU has fallen off the bus"),
    92: Code(_N, "high rate of single-bit ECC errors"),
    94: Code(_A, "contained memory error"),
    95: Code(_C, "uncontained memory error"),
    109: Code(_A, "context switch timeout"),
    110: Code(_C, "security fault"),
    119: Code(_C, "timeout of a call of the GPU's system processor (GSP)"),
    120: Code(_C, "error of the GPU's system processor (GSP)"),
    121: Code(_C, "corrected error of the chip-to-chip link"),
    122: Code(_C, "SPI read failure of the power unit"),
    123: Code(_C, "SPI command failure of the power unit"),
    136: Code(_C, "training of a link failed"),
    137: Code(_A, "NVLink privilege error"),
    140: Code(_C, "unrecovered ECC error"),
    143: Code(_C, "initialization of the GPU failed"),
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
