"""One hostile pod: a manifest, JSON text that no manifest in memory can hold, and what was changed in a valid pod."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Document = dict[str, Any]


@dataclass(slots=True)
class Draft:
    """A pod that mutations change in place.

    Attributes:
        manifest: the pod.
        raw: JSON text by the marker that stands for it in the manifest: deeper than an encoder can write.
    """

    manifest: Document
    raw: dict[str, str] = field(default_factory=dict)

    def put_raw(self, text: str) -> str:
        """Return a marker to put into the manifest in place of JSON text."""
        marker = f"raw-{len(self.raw)}-marker"
        self.raw[marker] = text
        return marker

    @property
    def metadata(self) -> Document:
        found: Document = self.manifest["metadata"]
        return found

    @property
    def spec(self) -> Document:
        found: Document = self.manifest["spec"]
        return found

    @property
    def containers(self) -> list[Document]:
        found: list[Document] = self.spec["containers"]
        return found


@dataclass(frozen=True, slots=True)
class Case:
    """A finished pod; `changes` names the valid pod and the mutations it was made from, in their order."""

    seed: int
    manifest: Document
    raw: Mapping[str, str]
    changes: tuple[str, ...]

    def body(self, **metadata: str) -> bytes:
        """Return the pod as JSON, with more fields of metadata; lone surrogates are written as escapes."""
        named = self.manifest | {"metadata": self.manifest["metadata"] | metadata}
        text = json.dumps(named)
        for marker, raw in self.raw.items():
            text = text.replace(f'"{marker}"', raw)
        return text.encode()

    @property
    def kind(self) -> str:
        """A short name of the way the pod was made."""
        return "+".join(self.changes)
