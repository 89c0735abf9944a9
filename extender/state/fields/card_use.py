"""What nodes have measured of their cards, as their GPUNodes list it.

`vgpu.domain.cards.measured_card` describes the entries, and `reported_periods` says how they are read.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from extender.state.fields import reported_periods
from extender.state.fields.reported_periods import NAME, Lasting, Mib, Time
from vgpu.domain.cards.measured_card import MAX_CARD_ENTRIES
from vgpu.domain.identifiers import CardUuid

_Small = Annotated[int, Meta(ge=0, le=(1 << 15) - 1)]


class ReportedCardUse(msgspec.Struct, frozen=True, rename="camel"):
    """How long a card was busy in a period, and what its sensors said at the end of it; None where they did not."""

    gpu: Annotated[CardUuid, NAME]
    from_ms: Time
    until_ms: Time
    busy_ms: Lasting
    used_mib: Mib | None = msgspec.field(name="usedMiB", default=None)
    celsius: _Small | None = None
    watts: _Small | None = None


def decode(status: Mapping[str, Any]) -> tuple[ReportedCardUse, ...]:
    """Read a GPUNode's status."""
    return tuple(reported_periods.read(status, "cardUse", ReportedCardUse, MAX_CARD_ENTRIES))


def news(before: tuple[ReportedCardUse, ...], after: tuple[ReportedCardUse, ...]) -> Iterator[ReportedCardUse]:
    """Yield the entries that are new, or have grown."""
    known = {(use.gpu, use.from_ms): use.until_ms for use in before}
    yield from (use for use in after if known.get((use.gpu, use.from_ms), -1) < use.until_ms)
