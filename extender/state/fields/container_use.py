"""What nodes have measured of their containers, as their GPUNodes list it.

`vgpu.domain.cards.measured_use` describes the entries.

A device plugin may write any of it: entries that cannot be read, or are out of range, are left out. The list is read at
once by msgspec, because the event loop of the verbs reads it; only a list with a wrong entry is read entry by entry.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from vgpu.domain.cards import measured_use
from vgpu.domain.identifiers import CardUuid, ContainerName, PodUid

MAX_PERIOD_MS: Final = 7_200_000
_Time = Annotated[int, Meta(ge=0, le=1 << 43)]  # the year 2248
_Lasting = Annotated[int, Meta(ge=0, le=MAX_PERIOD_MS)]
_Waited = Annotated[int, Meta(ge=0, le=1 << 40)]  # of many threads together
_Mib = Annotated[int, Meta(ge=0, le=measured_use.MAX_MIB)]
_NAME: Final = Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$")


class ContainerUse(msgspec.Struct, frozen=True, rename="camel"):
    """GPU time and memory of a container on a card in a period; the fields are those of `measured_use.MeasuredUse`."""

    pod_uid: Annotated[PodUid, _NAME] = msgspec.field(name="podUID")
    container: Annotated[ContainerName, _NAME]
    gpu: Annotated[CardUuid, _NAME]
    from_ms: _Time
    until_ms: _Time
    gpu_ms: _Lasting
    percent: Annotated[int, Meta(ge=0, le=100)] = 0
    used_mib: _Mib = msgspec.field(name="usedMiB", default=0)
    peak_mib: _Mib = msgspec.field(name="peakMiB", default=0)
    levels: Annotated[tuple[_Lasting, ...], Meta(max_length=measured_use.LEVELS)] = ()
    idle_ms: _Time | None = None
    wait_ms: Annotated[tuple[_Waited, ...], Meta(max_length=len(measured_use.WAIT_CAUSES))] = ()

    @property
    def key(self) -> tuple[PodUid, str, CardUuid, int]:
        """What two versions of one entry have in common."""
        return self.pod_uid, self.container, self.gpu, self.from_ms


ByPod = Mapping[PodUid, tuple[ContainerUse, ...]]


def decode(status: Mapping[str, Any]) -> ByPod:
    """Read a GPUNode's status; return the entries by the UID of the pod."""
    listed = status.get("usage")
    if not isinstance(listed, list):
        return {}
    found: dict[PodUid, tuple[ContainerUse, ...]] = {}
    for use in _read(listed[: measured_use.MAX_ENTRIES]):
        if 0 < use.until_ms - use.from_ms <= MAX_PERIOD_MS:
            found[use.pod_uid] = (*found.get(use.pod_uid, ()), use)
    return found


def news(before: ByPod, after: ByPod) -> Iterator[ContainerUse]:
    """Yield the entries that are new, or have grown."""
    for uid, uses in after.items():
        known = before.get(uid)
        if known != uses:
            yield from (use for use in uses if known is None or use not in known)


def now(uses: tuple[ContainerUse, ...], container: ContainerName, gpu: CardUuid) -> ContainerUse | None:
    """Return the latest entry about a container on a card."""
    own = (use for use in uses if use.container == container and use.gpu == gpu)
    return max(own, key=lambda use: use.until_ms, default=None)


def _read(listed: list[Any]) -> Iterator[ContainerUse]:
    try:
        yield from msgspec.convert(listed, list[ContainerUse])
    except msgspec.ValidationError:
        for entry in listed:
            yield from _one(entry)


def _one(entry: Any) -> Iterator[ContainerUse]:
    try:
        yield msgspec.convert(entry, ContainerUse)
    except msgspec.ValidationError:
        return
