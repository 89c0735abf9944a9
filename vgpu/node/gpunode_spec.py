"""What an administrator wants of a node's cards: the spec of its GPUNode, as the device plugin reads it."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from vgpu.node import watermarks
from vgpu.node.watermarks import Watermark, Watermarks

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Spec:
    """The settings of the cards, by UUID.

    Attributes:
        watermarks: of cards that have their own.
        acknowledged: the fault that an administrator has dealt with.
    """

    watermarks: dict[str, Watermark] = field(default_factory=dict)
    acknowledged: Mapping[str, str] = field(default_factory=dict)


def decode(raw: bytes) -> Spec:
    """Read a GPUNode's spec; what is not valid is logged and ignored."""
    cards: list[dict[str, Any]] = (msgspec.json.decode(raw).get("spec") or {}).get("cards") or []
    found = {str(each.get("uuid")): each.get("acknowledgedFault") for each in cards}
    acknowledged = {gpu: fault for gpu, fault in found.items() if isinstance(fault, str) and fault}
    return Spec(watermarks.decode(raw), acknowledged)


class SpecHandler:
    """Hands the spec on, whenever the watch of the GPUNode shows it."""

    def __init__(self, acknowledge: Callable[[Mapping[str, str]], None], marks: Watermarks | None) -> None:
        self._acknowledge = acknowledge
        self._marks = marks

    def replace(self, objects: list[Spec], version: str) -> None:
        """Take the list: one GPUNode, or none yet."""
        if self._marks is not None:
            self._marks.replace([each.watermarks for each in objects], version)
        self._acknowledge(objects[0].acknowledged if objects else {})

    def upsert(self, obj: Spec) -> None:
        """Take the GPUNode's change."""
        if self._marks is not None:
            self._marks.upsert(obj.watermarks)
        self._acknowledge(obj.acknowledged)

    def delete(self, obj: Spec) -> None:
        """Take the GPUNode's deletion."""
        if self._marks is not None:
            self._marks.delete(obj.watermarks)
        self._acknowledge({})
