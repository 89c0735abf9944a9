"""Lists of periods in which nodes have measured something, as their GPUNodes have them: how the lists are read.

A device plugin may write any of it: entries that cannot be read, or are out of range, are left out. A list is read at
once by msgspec, because the event loop of the verbs reads it; only a list with a wrong entry is read entry by entry.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, Protocol, TypeVar

import msgspec
from msgspec import Meta

from vgpu.domain.cards import measured_use

MAX_PERIOD_MS: Final = 7_200_000
Time = Annotated[int, Meta(ge=0, le=1 << 43)]  # the year 2248
Lasting = Annotated[int, Meta(ge=0, le=MAX_PERIOD_MS)]
Mib = Annotated[int, Meta(ge=0, le=measured_use.MAX_MIB)]
NAME: Final = Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$")


class ReportedPeriod(Protocol):
    """What was measured between two times, in Unix milliseconds."""

    @property
    def from_ms(self) -> int:
        """Beginning."""

    @property
    def until_ms(self) -> int:
        """End."""


P = TypeVar("P", bound=ReportedPeriod)


def read(status: Mapping[str, Any], field: str, kind: type[P], most: int) -> Iterator[P]:
    """Yield the entries of a list of a GPUNode's status, of the first `most`."""
    listed = status.get(field)
    if isinstance(listed, list):
        yield from (period for period in _decoded(listed[:most], kind) if _is_in_range(period))


def _is_in_range(period: ReportedPeriod) -> bool:
    return 0 < period.until_ms - period.from_ms <= MAX_PERIOD_MS


def _decoded(listed: list[Any], kind: type[P]) -> Iterator[P]:
    try:
        yield from msgspec.convert(listed, list[kind])  # type: ignore[valid-type] # a class that is known at run time
    except msgspec.ValidationError:
        for entry in listed:
            yield from _one(entry, kind)


def _one(entry: Any, kind: type[P]) -> Iterator[P]:
    try:
        yield msgspec.convert(entry, kind)
    except msgspec.ValidationError:
        return
