"""The grammar of amounts.

In resources an amount is a whole number, as the API server prints it: `8192`, `18k`, `1e3`. On the command line and in
`VGPU_MEMORY_LIMIT` it may have a binary unit: `8Gi`, `8GiB`, `512MiB`; a number without a unit is MiB.
"""

import re
from typing import Final

from vgpu.domain.problem import clipped

WHOLE_PERCENT: Final = 100  # all of a card's memory, or of its time
FULL_CORES: Final = WHOLE_PERCENT  # `cores` are percent of one GPU's time

MIB: Final = 1 << 20
GIB_IN_MIB: Final = 1024
MAX_MIB: Final = 1 << 24  # 16 TiB: more than any card has, and sums of it do not overflow

MAX_DIGITS: Final = 18
# The decimal forms of k8s.io/apimachinery/pkg/api/resource.Quantity; the API server canonicalises 18000 to 18k.
_NUMBER = re.compile(rf"([+-]?\d{{1,{MAX_DIGITS}}})(?:(k|M|G)|[eE](\d{{1,2}}))?", re.ASCII)
_DECIMAL: Final = {"k": 10**3, "M": 10**6, "G": 10**9}
_SIZE = re.compile(r"(\d{1,9})(?:\.(\d{1,3}))?\s?(Ki|Mi|Gi|Ti)?B?", re.ASCII)
_LONG_SIZE = re.compile(r"0*([1-9]\d{9,})(?:\.\d+)?\s?(Ki|Mi|Gi|Ti)?B?", re.ASCII)
_BINARY: Final = {"Ki": 1 << 10, "Mi": MIB, "Gi": 1 << 30, "Ti": 1 << 40}
_BYTES = re.compile(r"\d+(\.\d+)?\s?B", re.ASCII)
_OTHER_UNIT = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)\s?([kmgt])i?b?", re.ASCII | re.IGNORECASE)
SMALLEST_PLAIN_MIB: Final = 64  # a number without a unit below this is taken for a mistake: no CUDA program fits in it


def whole_number(text: str | int) -> int | None:
    """Read a resource amount; None where it is no whole number in decimal form (`16Gi`, `1500m`, `x`).

    A sign is read too, so that the caller can report -1 as out of range instead of unreadable.
    """
    written = str(text)
    if written.isascii() and written.isdigit() and len(written) <= MAX_DIGITS:
        return int(written)
    match = _NUMBER.fullmatch(written)
    if match is None:
        return None
    digits, suffix, exponent = match.groups()
    scale: int = _DECIMAL.get(suffix, 1) * 10 ** int(exponent or 0)
    return int(digits) * scale


def size_bytes(text: str) -> int | None:
    """Read a size such as `8GiB`, `8Gi`, `1.5Gi` or `8192` (MiB), in bytes; None where it cannot be read."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        return None
    whole, fraction, unit = match.groups()
    scale = _BINARY[unit or "Mi"]
    part: int = int(fraction or 0) * scale // 10 ** len(fraction or "")
    return int(whole) * scale + part


def limit_bytes(text: str) -> int:
    """Read a limit of memory from the command line, in bytes. Raises ValueError, which says what to write instead."""
    stripped = text.strip()
    amount = None if _BYTES.fullmatch(stripped) else size_bytes(stripped)
    if amount is None and _is_beyond_any_card(stripped):
        amount = (MAX_MIB + 1) * MIB
    if amount is None:
        raise ValueError(f"not an amount of memory: {clipped(text)!r}; write {_correction(stripped)}")
    if amount == 0:
        raise ValueError(f"{clipped(text)!r} would refuse every allocation; leave the amount out for no limit")
    if stripped.isdecimal() and amount < SMALLEST_PLAIN_MIB * MIB:
        raise ValueError(
            f"{stripped!r} is {stripped} MiB, too little for a CUDA program; write {stripped}Gi or {stripped}Mi"
        )
    if amount > MAX_MIB * MIB:
        raise ValueError(f"{clipped(text)!r} is more than any card has; the most is {MAX_MIB // GIB_IN_MIB}Gi")
    return amount


def _is_beyond_any_card(text: str) -> bool:
    """Whether a size with more digits than `size_bytes` reads is more than any card has."""
    match = _LONG_SIZE.fullmatch(text)
    if match is None or _BYTES.fullmatch(text):
        return False
    digits, unit = match.groups()
    return len(digits) > MAX_DIGITS or int(digits) * _BINARY[unit or "Mi"] > MAX_MIB * MIB


def _correction(text: str) -> str:
    """Return how an amount may have been meant: `8Gi` for `8G`, `8gb` and `8 GB`."""
    match = _OTHER_UNIT.fullmatch(text)
    return f"{match[1]}{match[2].upper()}i" if match else "8Gi, 512Mi, or MiB as a plain number"


def number_hint(text: str, unit_mib: int = 1) -> str:
    """Return what to write for an amount with a unit, as a number of `unit_mib` MiB; empty where that is unknown.

    `3Gi` is 3072. The decimal units are most likely meant as binary ones.
    """
    binary = text if text.endswith("i") else f"{text}i"
    size = size_bytes(binary) if text[-1:] in {"i", "M", "G", "T"} else None
    number = size // (MIB * unit_mib) if size else 0
    return f"; for {text} write {number}" if number else ""


def human_mib(mib: int) -> str:
    """Write an amount of MiB for people, without rounding: `512 MiB`, `8 GiB`, `5.5 GiB`, `8190 MiB`."""
    if mib < GIB_IN_MIB or mib % (GIB_IN_MIB // 4):
        return f"{mib} MiB"
    return f"{mib / GIB_IN_MIB:.2f}".rstrip("0").rstrip(".") + " GiB"
