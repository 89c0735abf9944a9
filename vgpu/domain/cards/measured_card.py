"""What a node has measured of one of its cards: an entry of `cardUse` in its GPUNode's status.

A device plugin writes the entries, and the extender reads them. As with entries about containers (`measured_use`), an
entry covers an hour at most, its GPU time grows until the hour is over, and a later version replaces the earlier one.
Memory, temperature and power are those at the end: the running hour's entry has them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from vgpu.domain.cards.measured_use import MeasuredUse
from vgpu.domain.identifiers import CardUuid

MAX_CARD_ENTRIES: Final = 128  # 64 cards, in this hour and in the last one


@dataclass(frozen=True, slots=True)
class CardSensors:
    """What a card's sensors say now; None where the card does not tell: memory in MiB, degrees Celsius, watts."""

    used_mib: int | None = None
    celsius: int | None = None
    watts: int | None = None


def as_json(periods: Iterable[MeasuredUse], sensors: Mapping[CardUuid, CardSensors]) -> list[dict[str, Any]]:
    """Write the entries of cards' periods, the latest first; the latest of each card with what its sensors say."""
    found: list[dict[str, Any]] = []
    seen: set[CardUuid] = set()
    for period in periods:
        said = CardSensors() if period.gpu in seen else sensors.get(period.gpu, CardSensors())
        seen.add(period.gpu)
        values = {"usedMiB": said.used_mib, "celsius": said.celsius, "watts": said.watts}
        found.append(
            {
                "gpu": period.gpu,
                "fromMs": period.from_ms,
                "untilMs": period.until_ms,
                "busyMs": period.gpu_ms,
                **{name: value for name, value in values.items() if value is not None},
            }
        )
    return found[:MAX_CARD_ENTRIES]
