"""A problem in a manifest: which field, what it contains, and what to write instead."""

from dataclasses import dataclass
from typing import Final

from vgpu.domain import printable

MAX_SHOWN: Final = 100
MAX_FIELD: Final = 400  # the longest path that the API server accepts: names of 63 and 253 characters in it


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem.

    Attributes:
        field: path of the field, `spec.containers[main].resources.limits[vgpu.io/gpu-mem]`.
        value: the field's value as text, the first 100 characters of it with its length where it is longer: problems
            stay in memory as long as their pod exists. Empty where the field is missing.
        why: what is wrong, and what to write instead.
    """

    field: str
    value: str
    why: str

    def __post_init__(self) -> None:
        """Keep little of a long value."""
        object.__setattr__(self, "value", clipped(self.value))

    def __str__(self) -> str:
        """Return one printable line: field and value are a user's, and other people read it in Events and lists."""
        value = f' "{self.value}"' if self.value else ""
        return printable.line(f"{clipped(self.field, MAX_FIELD)}:{value} {self.why}")


def clipped(text: str, most: int = MAX_SHOWN) -> str:
    """Return a user's text for a message: at most 100 characters of it, or `most`."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text)} characters)"
