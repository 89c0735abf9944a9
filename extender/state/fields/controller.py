"""What made a pod, as its object says: the owner reference of its controller, for members of gangs only.

Users write pods: the reference is a claim, and what it says is looked up where it matters.
"""

from typing import Final

import msgspec

from vgpu.domain.json_types import Json

MAX_LENGTH: Final = 253  # characters of any of its texts


class Controller(msgspec.Struct, frozen=True, gc=False):
    """An owner reference with `controller: true`."""

    api_version: str
    kind: str
    name: str
    uid: str

    @property
    def key(self) -> tuple[str, str]:
        """API group and kind."""
        return self.api_version.rpartition("/")[0], self.kind


def of(metadata: Json) -> Controller | None:
    """Return the controller of an object, None where it has none, or where the reference cannot be read."""
    for reference in metadata.get("ownerReferences") or ():
        if reference.get("controller"):
            texts = [reference.get(field) or "" for field in ("apiVersion", "kind", "name", "uid")]
            found = Controller(*texts)
            return found if found.uid and all(len(text) <= MAX_LENGTH for text in texts) else None
    return None
