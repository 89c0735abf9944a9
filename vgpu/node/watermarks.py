"""How busy a card may be before best-effort containers give way: an admin's word, in the spec of the node's GPUNode.

It is handed on to the arbiter in a file, which that reads again when it changes: lines `GPU-... HIGH LOW`, in percent
of the last second that the other containers used, with `*` for the cards that have no line of their own.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from vgpu.limits import ANY_GPU, uuid_bytes
from vgpu.quantity import WHOLE_PERCENT

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Watermark:
    """Above `high` percent the best-effort share shrinks, below `low` it grows; 0 <= low < high <= 100."""

    high: int
    low: int

    def __post_init__(self) -> None:
        if not 0 <= self.low < self.high <= WHOLE_PERCENT:
            raise ValueError(
                f"watermark: 0 <= low < high <= {WHOLE_PERCENT} does not hold for low {self.low}, high {self.high}"
            )


def decode(raw: msgspec.Raw) -> dict[str, Watermark]:
    """Read a GPUNode: the cards that have watermarks. One that makes no sense counts as none, and is told."""
    cards: list[dict[str, Any]] = (msgspec.json.decode(raw).get("spec") or {}).get("cards") or []
    found = {}
    for card in cards:
        if wanted := card.get("watermark"):
            try:
                uuid_bytes(card["uuid"])
                found[card["uuid"]] = Watermark(int(wanted["high"]), int(wanted["low"]))
            except (KeyError, TypeError, ValueError) as error:
                log.warning("GPUNode: card %r: %s", card.get("uuid"), error)
    return found


def encode(default: Watermark, cards: Mapping[str, Watermark]) -> str:
    """Write the arbiter's file."""
    lines = {ANY_GPU: default, **dict(sorted(cards.items()))}
    return "".join(f"{gpu} {each.high} {each.low}\n" for gpu, each in lines.items())


class Watermarks:
    """Keeps the file true to the one GPUNode that is watched; what it said last stands until the watch knows better."""

    def __init__(self, path: Path, default: Watermark) -> None:
        """Raises OSError where the file cannot be made."""
        self._path = path
        self._default = default
        if not path.exists():
            self._write({})

    def replace(self, objects: list[dict[str, Watermark]]) -> None:
        """Take what is there: one GPUNode, or none yet."""
        self._take(objects[0] if objects else {})

    def upsert(self, obj: dict[str, Watermark]) -> None:
        """Take the GPUNode as it is now."""
        self._take(obj)

    def delete(self, obj: dict[str, Watermark]) -> None:
        """Forget what it said."""
        del obj
        self._take({})

    def _take(self, cards: Mapping[str, Watermark]) -> None:
        try:
            if self._path.read_text() != encode(self._default, cards):
                self._write(cards)
                log.info("watermarks: %d cards have their own", len(cards))
        except OSError as error:
            log.warning("watermarks: %s", error)

    def _write(self, cards: Mapping[str, Watermark]) -> None:
        fresh = self._path.with_suffix(".new")
        fresh.write_text(encode(self._default, cards))
        fresh.replace(self._path)
