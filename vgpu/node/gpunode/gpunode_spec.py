"""What an administrator wants of a node's cards: the spec of its GPUNode, as the device plugin reads it."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import msgspec

from vgpu.adapters.kubernetes import timestamps
from vgpu.domain.cards import card_status
from vgpu.domain.identifiers import CardUuid
from vgpu.node.cards import watermarks
from vgpu.node.cards.watermarks import Watermark, Watermarks

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class GpuNodeSpec:
    """The settings of the cards, by UUID.

    Attributes:
        watermarks: of cards that have their own.
        acknowledged: the fault that an administrator has dealt with.
        named: every card that has an entry.
        cordoned: cards that take no new containers, each with the time since when; empty where the object's status says
            none.
    """

    watermarks: dict[CardUuid, Watermark] = field(default_factory=dict)
    acknowledged: Mapping[CardUuid, str] = field(default_factory=dict)
    named: frozenset[CardUuid] = frozenset()
    cordoned: Mapping[CardUuid, str] = field(default_factory=dict)


_NOTHING: Final = GpuNodeSpec()


def decode(raw: bytes) -> GpuNodeSpec:
    """Read a GPUNode's spec; what is not valid is logged and ignored."""
    obj = msgspec.json.decode(raw)
    cards: list[dict[str, Any]] = (obj.get("spec") or {}).get("cards") or []
    found = {CardUuid(str(card.get("uuid"))): card.get("acknowledgedFault") for card in cards}
    acknowledged = {gpu: fault for gpu, fault in found.items() if isinstance(fault, str) and fault}
    return GpuNodeSpec(watermarks.decode(raw), acknowledged, frozenset(found), card_status.cordons(obj))


class SpecHandler:
    """Hands the spec on, whenever the watch of the GPUNode shows it."""

    def __init__(
        self,
        acknowledge: Callable[[Mapping[CardUuid, str]], None],
        cards: Callable[[frozenset[CardUuid], Mapping[CardUuid, str]], None],
        marks: Watermarks | None,
        now: Callable[[], datetime],
    ) -> None:
        """`acknowledge` takes the faults that were dealt with.

        `cards` takes the cards that are named, and those that are cordoned with the time since when, as RFC 3339.
        """
        self._acknowledge = acknowledge
        self._cards = cards
        self._marks = marks
        self._now = now
        self._since: dict[CardUuid, str] | None = None

    def replace(self, objects: list[GpuNodeSpec], version: str) -> None:
        """Take the list: one GPUNode, or none yet."""
        if self._marks is not None:
            self._marks.replace([obj.watermarks for obj in objects], version)
        self._take(objects[0] if objects else _NOTHING)

    def upsert(self, obj: GpuNodeSpec) -> None:
        """Take the GPUNode's change."""
        if self._marks is not None:
            self._marks.upsert(obj.watermarks)
        self._take(obj)

    def delete(self, obj: GpuNodeSpec) -> None:
        """Take the GPUNode's deletion."""
        if self._marks is not None:
            self._marks.delete(obj.watermarks)
        self._take(_NOTHING)

    def _take(self, spec: GpuNodeSpec) -> None:
        self._acknowledge(spec.acknowledged)
        known = spec.cordoned if self._since is None else self._since  # later a status may be older than its spec
        at = timestamps.seconds(self._now())
        self._since = {uuid: known.get(uuid) or at for uuid in spec.cordoned}
        self._cards(spec.named, self._since)
