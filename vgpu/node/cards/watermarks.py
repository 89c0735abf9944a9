"""How busy a card may be before best-effort containers get less of its time: set in the spec of the node's GPUNode.

The watermarks are passed to the arbiter in a file, which it reads again when it changes: lines `GPU-... HIGH LOW`, in
percent of the last second that the other containers used, with `*` for the cards without a line.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from vgpu.domain.formats.limits import ANY_GPU, uuid_bytes
from vgpu.domain.identifiers import CardUuid
from vgpu.domain.quantity import WHOLE_PERCENT

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


def decode(raw: bytes) -> dict[CardUuid, Watermark]:
    """Read a GPUNode's watermarks by card UUID; a watermark that is not valid is logged and ignored."""
    cards: list[dict[str, Any]] = (msgspec.json.decode(raw).get("spec") or {}).get("cards") or []
    found: dict[CardUuid, Watermark] = {}
    for card in cards:
        if wanted := card.get("watermark"):
            try:
                uuid_bytes(uuid := CardUuid(card["uuid"]))
                found[uuid] = Watermark(int(wanted["high"]), int(wanted["low"]))
            except (KeyError, TypeError, ValueError) as error:
                log.warning("GPUNode: card %r: %s", card.get("uuid"), error)
    return found


def encode(default: Watermark, cards: Mapping[CardUuid, Watermark]) -> str:
    """Return the content of the arbiter's file."""
    lines = {ANY_GPU: default, **dict(sorted(cards.items()))}
    return "".join(f"{gpu} {line.high} {line.low}\n" for gpu, line in lines.items())


class Watermarks:
    """Keeps the file up to date with the node's GPUNode; after a start the file stays as it is until the first list."""

    def __init__(self, path: Path, default: Watermark) -> None:
        """Raises OSError where the file cannot be created."""
        self._path = path
        self._default = default
        if not path.exists():
            self._write({})

    def replace(self, objects: list[dict[CardUuid, Watermark]], version: str) -> None:  # noqa: ARG002 - the reflector's protocol
        """Take the list: one GPUNode, or none yet."""
        self._update(objects[0] if objects else {})

    def upsert(self, obj: dict[CardUuid, Watermark]) -> None:
        """Take the GPUNode's change."""
        self._update(obj)

    def delete(self, obj: dict[CardUuid, Watermark]) -> None:
        """Take the GPUNode's deletion."""
        del obj
        self._update({})

    def _update(self, cards: Mapping[CardUuid, Watermark]) -> None:
        try:
            if self._path.read_text() != encode(self._default, cards):
                self._write(cards)
                log.info("watermarks: %d cards have watermarks of their own", len(cards))
        except OSError as error:
            log.warning("watermarks: %s", error)

    def _write(self, cards: Mapping[CardUuid, Watermark]) -> None:
        fresh = self._path.with_suffix(".new")
        fresh.write_text(encode(self._default, cards))
        fresh.replace(self._path)
