"""A problem in a manifest: which field, what it contains, and what to write instead."""

from dataclasses import dataclass


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
        value = f' "{self.value}"' if self.value else ""
        return f"{self.field}:{value} {self.why}"
