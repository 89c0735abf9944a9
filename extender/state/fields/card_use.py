"""What nodes have measured of their cards, as their GPUNodes list it; `vgpu.domain.cards.measured_card` describes it.

A device plugin may write any of it: entries that cannot be read, or are out of range, are left out.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from extender.state.fields.container_use import MAX_PERIOD_MS
from vgpu.domain.cards import measured_use
from vgpu.domain.cards.measured_card import MAX_CARD_ENTRIES
from vgpu.domain.identifiers import CardUuid

_Time = Annotated[int, Meta(ge=0, le=1 << 43)]
_Small = Annotated[int, Meta(ge=0, le=(1 << 15) - 1)]
_NAME: Final = Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$")


class ReportedCardUse(msgspec.Struct, frozen=True, rename="camel"):
    """How long a card was busy in a period, and what its sensors said at the end of it; None where they did not."""

    gpu: Annotated[CardUuid, _NAME]
    from_ms: _Time
    until_ms: _Time
    busy_ms: Annotated[int, Meta(ge=0, le=MAX_PERIOD_MS)]
    used_mib: Annotated[int, Meta(ge=0, le=measured_use.MAX_MIB)] | None = msgspec.field(name="usedMiB", default=None)
    celsius: _Small | None = None
    watts: _Small | None = None


def decode(status: Mapping[str, Any]) -> tuple[ReportedCardUse, ...]:
    """Read a GPUNode's status."""
    listed = status.get("cardUse")
    if not isinstance(listed, list):
        return ()
    found = _read(listed[:MAX_CARD_ENTRIES])
    return tuple(use for use in found if 0 < use.until_ms - use.from_ms <= MAX_PERIOD_MS)


def news(before: tuple[ReportedCardUse, ...], after: tuple[ReportedCardUse, ...]) -> Iterator[ReportedCardUse]:
    """Yield the entries that are new, or have grown."""
    known = {(use.gpu, use.from_ms): use.until_ms for use in before}
    yield from (use for use in after if known.get((use.gpu, use.from_ms), -1) < use.until_ms)


def _read(listed: list[Any]) -> Iterator[ReportedCardUse]:
    for entry in listed:
        try:
            yield msgspec.convert(entry, ReportedCardUse)
        except msgspec.ValidationError:
            continue
