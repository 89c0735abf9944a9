"""A problem in a manifest: which field, what it contains, and what to write instead."""

from dataclasses import dataclass
from typing import Final

MAX_SHOWN: Final = 100


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem.

    Attributes:
        field: path of the field, `spec.containers[main].resources.limits[vgpu.io/gpu-mem]`.
        value: the field's value as text; empty where the field is missing.
        why: what is wrong, and what to write instead.
    """

    field: str
    value: str
    why: str

    def __str__(self) -> str:
        value = f' "{clipped(self.value)}"' if self.value else ""
        return f"{self.field}:{value} {self.why}"


def clipped(text: str) -> str:
    """Return a user's text for a message: at most 100 characters of it."""
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}… ({len(text)} characters)"
