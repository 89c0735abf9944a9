"""What nodes have measured of their containers, as their GPUNodes list it.

`vgpu.domain.cards.measured_use` describes the entries, and `reported_periods` says how they are read.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from extender.state.fields import reported_periods
from extender.state.fields.reported_periods import NAME, Lasting, Mib, Time
from vgpu.domain.cards import measured_use
from vgpu.domain.identifiers import CardUuid, ContainerName, PodUid

_Waited = Annotated[int, Meta(ge=0, le=1 << 40)]  # of many threads together


class ContainerUse(msgspec.Struct, frozen=True, rename="camel"):
    """GPU time and memory of a container on a card in a period; the fields are those of `measured_use.MeasuredUse`."""

    pod_uid: Annotated[PodUid, NAME] = msgspec.field(name="podUID")
    container: Annotated[ContainerName, NAME]
    gpu: Annotated[CardUuid, NAME]
    from_ms: Time
    until_ms: Time
    gpu_ms: Lasting
    percent: Annotated[int, Meta(ge=0, le=100)] = 0
    used_mib: Mib = msgspec.field(name="usedMiB", default=0)
    peak_mib: Mib = msgspec.field(name="peakMiB", default=0)
    levels: Annotated[tuple[Lasting, ...], Meta(max_length=measured_use.LEVELS)] = ()
    idle_ms: Time | None = None
    wait_ms: Annotated[tuple[_Waited, ...], Meta(max_length=len(measured_use.WAIT_CAUSES))] = ()

    @property
    def key(self) -> tuple[PodUid, str, CardUuid, int]:
        """What two versions of one entry have in common."""
        return self.pod_uid, self.container, self.gpu, self.from_ms


ByPod = Mapping[PodUid, tuple[ContainerUse, ...]]


def decode(status: Mapping[str, Any]) -> ByPod:
    """Read a GPUNode's status; return the entries by the UID of the pod."""
    found: dict[PodUid, tuple[ContainerUse, ...]] = {}
    for use in reported_periods.read(status, "usage", ContainerUse, measured_use.MAX_ENTRIES):
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
