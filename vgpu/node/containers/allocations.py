"""The records of allocations: a directory for each, with a record that survives a restart of the plugin.

The kubelet keeps the answer to Allocate for the container's life, across restarts of the kubelet, the plugin and the
node, and calls PreStartContainer with nothing but the device IDs. So the record leads from the IDs to the directory.

A chain is a sequence of allocations of the same IDs within one pod: the kubelet hands an init container's IDs on to the
next container.
"""

import json
import logging
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final, Self

import msgspec

from vgpu.adapters import durable_files
from vgpu.domain.errors import MalformedError
from vgpu.domain.identifiers import ContainerName, Namespace, PodUid
from vgpu.node.containers.bound_pod import BoundPod, PodKey

VERSION: Final = 1
_RECORD: Final = "record.json"

log = logging.getLogger(__name__)


class OtherVersion(MalformedError):
    """A record that another release of the plugin has written."""


@dataclass(frozen=True, slots=True)
class Holder:
    """A container of a pod."""

    uid: PodUid
    namespace: Namespace
    name: str
    container: ContainerName

    @classmethod
    def of(cls, pod: BoundPod, container: ContainerName) -> Self:
        """Return a container of a pod as a holder."""
        return cls(pod.uid, pod.namespace, pod.name, container)

    @property
    def key(self) -> PodKey:
        """The pod's namespace and name."""
        return self.namespace, self.name


@dataclass(frozen=True, slots=True)
class Allocation:
    """The record of one allocation.

    Attributes:
        id: the directory's name.
        resource: the kubelet's resource: slices or cards.
        ids: the device IDs.
        chain: the same for allocations whose IDs were handed on within one pod.
        sequence: grows with every allocation on this node.
        created: seconds since 1970.
        library: name of the installed library that is mounted.
        holder: the container that the allocation is for, as far as it is known; None where none was found.
        is_doubtful: whether another container may be the holder.
        is_proven: whether PreStartContainer has confirmed the holder, and limits are written.
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


@dataclass(frozen=True, slots=True)
class Unread:
    """Directories without a record in memory.

    Attributes:
        torn: there is no record, or it is damaged, as after a power loss.
        foreign: the record is that of another release, or could not be read this time.
    """

    torn: frozenset[str]
    foreign: frozenset[str]


class Allocations:
    """All records of this node, read at the start, and kept in memory and on disk."""

    def __init__(self, root: Path) -> None:
        """Read the records below `root`; `sweep` finds the directories whose records cannot be read."""
        self.root = root
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._by_id: dict[str, Allocation] = {}
        self._unsaved: set[str] = set()
        self.sweep()

    def all(self) -> tuple[Allocation, ...]:
        """Return every allocation, in the order of creation."""
        return tuple(sorted(self._by_id.values(), key=lambda allocation: allocation.sequence))

    def next_sequence(self) -> int:
        """Return the number of the next allocation."""
        return max((allocation.sequence for allocation in self._by_id.values()), default=0) + 1

    def add(self, allocation: Allocation) -> None:
        """Create the directory and the record. Where the disk is full, the record is kept in memory, and saved later.

        Later is when the holder is confirmed: an error now would make the pod Failed for good.
        """
        self._by_id[allocation.id] = allocation
        try:
            self._write(allocation)
        except OSError:
            log.exception("record of allocation %s; PreStartContainer tries again", allocation.id)
            self._unsaved.add(allocation.id)

    def set_holder(self, allocation: Allocation, holder: Holder, *, proven: bool) -> Allocation:
        """Record the confirmed holder of an allocation. Raises OSError."""
        confirmed = replace(allocation, holder=holder, is_doubtful=False, is_proven=proven)
        if confirmed != allocation or allocation.id in self._unsaved:
            self._write(confirmed)
        return confirmed

    def forget(self, allocation_id: str) -> None:
        """Remove a record from memory; the caller has removed the directory."""
        self._by_id.pop(allocation_id, None)
        self._unsaved.discard(allocation_id)

    def sweep(self) -> Unread:
        """Read the directories without a record in memory: those with a record are taken, the others are returned."""
        torn, foreign = set(), set()
        for directory in self.root.iterdir():
            if directory.name in self._by_id:
                continue
            try:
                self._by_id[directory.name] = _read(directory)
            except OtherVersion:
                foreign.add(directory.name)
            except (MalformedError, FileNotFoundError, NotADirectoryError):
                torn.add(directory.name)
            except OSError:
                foreign.add(directory.name)
        return Unread(frozenset(torn), frozenset(foreign))

    def overlapping(self, resource: str, ids: Collection[str]) -> tuple[Allocation, ...]:
        """Return the allocations of any of the IDs, oldest first."""
        return tuple(
            allocation
            for allocation in self.all()
            if allocation.resource == resource and not allocation.ids.isdisjoint(ids)
        )

    def chains(self, resource: str, ids: Collection[str]) -> tuple[tuple[Allocation, ...], ...]:
        """Return the allocations of exactly these IDs, chain by chain, newest chain first."""
        wanted = frozenset(ids)
        grouped: dict[str, list[Allocation]] = {}
        for allocation in self.overlapping(resource, ids):
            if allocation.ids == wanted:
                grouped.setdefault(allocation.chain, []).append(allocation)
        newest_first = sorted(grouped.values(), key=lambda chain: -chain[-1].sequence)
        return tuple(map(tuple, newest_first))

    def was_allocated(self, uid: PodUid, container: ContainerName) -> bool:
        """Whether the records name a container as a holder."""
        return any(
            allocation.holder and (allocation.holder.uid, allocation.holder.container) == (uid, container)
            for allocation in self.all()
        )

    def directory(self, allocation_id: str) -> Path:
        """Return the directory of an allocation's files."""
        return self.root / allocation_id

    def _write(self, allocation: Allocation) -> None:
        """Write a record that a power loss leaves whole: the kubelet keeps the IDs, and starts the container again."""
        directory = self.directory(allocation.id)
        directory.mkdir(mode=0o700, exist_ok=True)
        durable_files.write(directory / _RECORD, encode(allocation))
        durable_files.sync_directory(self.root)
        self._by_id[allocation.id] = allocation
        self._unsaved.discard(allocation.id)


def encode(allocation: Allocation) -> bytes:
    """Write a record."""
    return json.dumps({"v": VERSION, **asdict(allocation), "ids": sorted(allocation.ids)}).encode()


def decode(data: bytes) -> Allocation:
    """Read a record. Raises MalformedError, as OtherVersion where it is whole."""
    try:
        value: dict[str, Any] = json.loads(data)
        version = value.pop("v")
        if version == VERSION:
            return msgspec.convert(value, Allocation)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, msgspec.ValidationError) as error:
        raise MalformedError(f"record: {error}") from error
    raise OtherVersion(f"record of version {version}")


def live(allocations: Iterable[Allocation], pods: Iterable[BoundPod]) -> tuple[Allocation, ...]:
    """Return the allocations whose holder is a pod of this node that is not terminal."""
    running = {pod.uid for pod in pods if not pod.is_terminal}
    return tuple(
        allocation for allocation in allocations if allocation.holder is not None and allocation.holder.uid in running
    )


def _read(directory: Path) -> Allocation:
    """Read a directory's record. Raises MalformedError and OSError."""
    allocation = decode((directory / _RECORD).read_bytes())
    if allocation.id != directory.name:
        raise MalformedError(f"record of {allocation.id} in {directory.name}")
    return allocation
