"""What Allocate gave out: one directory each, with a record that survives the plugin.

The kubelet keeps the answer to Allocate for the container's life, across restarts of itself, of the plugin and of the
node, and calls PreStartContainer with nothing but the IDs. So the record leads from the IDs to the directory.

A chain is what IDs went through within one pod: the kubelet hands an init container's IDs on to those after it.
"""

import json
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final, Self

from vgpu.errors import MalformedError
from vgpu.node.pods import BoundPod, PodKey

VERSION: Final = 1
_RECORD: Final = "record.json"


@dataclass(frozen=True, slots=True)
class Holder:
    """A container of a pod."""

    uid: str
    namespace: str
    name: str
    container: str

    @classmethod
    def of(cls, pod: BoundPod, container: str) -> Self:
        """Name a container of a pod."""
        return cls(pod.uid, pod.namespace, pod.name, container)

    @property
    def key(self) -> PodKey:
        """Namespace and name of the pod."""
        return self.namespace, self.name


@dataclass(frozen=True, slots=True)
class Allocation:
    """One answer to Allocate.

    Attributes:
        id: names the directory.
        resource: slices or cards.
        ids: the device IDs.
        chain: shared by allocations that were handed on from container to container of one pod.
        sequence: grows with every allocation on this node.
        created: seconds since 1970.
        library: which installed library is mounted.
        holder: whom it is thought to be for; None where nobody could be found.
        is_doubtful: the holder was not the only one it could be.
        is_proven: PreStartContainer has found the holder right, and limits are written.
    """

    id: str
    resource: str
    ids: frozenset[str]
    chain: str
    sequence: int
    created: float
    library: str
    holder: Holder | None = None
    is_doubtful: bool = False
    is_proven: bool = False


class Allocations:
    """All records of this node; read at the start, then kept in memory and on disk alike."""

    def __init__(self, root: Path) -> None:
        """Read what is below `root`; what cannot be read is left alone until it is cleaned away."""
        self.root = root
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
        read = (_read(path) for path in root.glob(f"*/{_RECORD}"))
        self._by_id = {each.id: each for each in read if each is not None}

    def all(self) -> tuple[Allocation, ...]:
        """Every allocation, in the order in which they were made."""
        return tuple(sorted(self._by_id.values(), key=lambda each: each.sequence))

    def next_sequence(self) -> int:
        """The number of the next allocation."""
        return max((each.sequence for each in self._by_id.values()), default=0) + 1

    def add(self, allocation: Allocation) -> None:
        """Make the directory and the record."""
        self.directory(allocation.id).mkdir(mode=0o700)
        self._keep(allocation)

    def set_holder(self, allocation: Allocation, holder: Holder, *, proven: bool) -> Allocation:
        """Note whom an allocation is really for."""
        settled = replace(allocation, holder=holder, is_doubtful=False, is_proven=proven)
        if settled != allocation:
            self._keep(settled)
        return settled

    def forget(self, allocation_id: str) -> None:
        """Drop a record; the directory is the caller's to remove."""
        self._by_id.pop(allocation_id, None)

    def overlapping(self, resource: str, ids: Collection[str]) -> tuple[Allocation, ...]:
        """Allocations of any of the IDs, oldest first."""
        return tuple(each for each in self.all() if each.resource == resource and not each.ids.isdisjoint(ids))

    def chains(self, resource: str, ids: Collection[str]) -> tuple[tuple[Allocation, ...], ...]:
        """Allocations of exactly these IDs, chain by chain, newest first."""
        wanted = frozenset(ids)
        grouped: dict[str, list[Allocation]] = {}
        for each in self.overlapping(resource, ids):
            if each.ids == wanted:
                grouped.setdefault(each.chain, []).append(each)
        newest_first = sorted(grouped.values(), key=lambda chain: -chain[-1].sequence)
        return tuple(map(tuple, newest_first))

    def was_allocated(self, uid: str, container: str) -> bool:
        """Whether a container has an allocation by our own reckoning."""
        return any(each.holder and (each.holder.uid, each.holder.container) == (uid, container) for each in self.all())

    def directory(self, allocation_id: str) -> Path:
        """Where an allocation's files are."""
        return self.root / allocation_id

    def _keep(self, allocation: Allocation) -> None:
        path = self.directory(allocation.id) / _RECORD
        fresh = path.with_suffix(".new")
        fresh.write_bytes(encode(allocation))
        fresh.replace(path)
        self._by_id[allocation.id] = allocation


def encode(allocation: Allocation) -> bytes:
    """Write a record."""
    return json.dumps({"v": VERSION, **asdict(allocation), "ids": sorted(allocation.ids)}).encode()


def decode(data: bytes) -> Allocation:
    """Read a record. Raises MalformedError."""
    try:
        value: dict[str, Any] = json.loads(data)
        if value.pop("v") != VERSION:
            raise MalformedError("record of another version")
        holder = value.pop("holder")
        return Allocation(**{**value, "ids": frozenset(value["ids"])}, holder=Holder(**holder) if holder else None)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise MalformedError(f"record: {error}") from error


def live(allocations: Iterable[Allocation], pods: Iterable[BoundPod]) -> tuple[Allocation, ...]:
    """Those whose holder is a pod of this node that is not over."""
    running = {pod.uid for pod in pods if not pod.is_terminal}
    return tuple(each for each in allocations if each.holder is not None and each.holder.uid in running)


def _read(path: Path) -> Allocation | None:
    try:
        return decode(path.read_bytes())
    except (MalformedError, OSError):
        return None
