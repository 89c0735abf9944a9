"""A refusal of what a user wrote: which field, what it says, and what it must be."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with a manifest.

    Attributes:
        field: path of the field, `spec.containers[main].resources.limits[vgpu.io/gpu-mem]`.
        value: what stands there, as text; empty where something is missing.
        why: what is wrong, and what to write instead.
    """

    field: str
    value: str
    why: str

    def __str__(self) -> str:
        said = f' "{self.value}"' if self.value else ""
        return f"{self.field}:{said} {self.why}"
