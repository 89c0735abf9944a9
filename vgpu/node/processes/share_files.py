"""Reads what the node knows of the containers with shares: the identity of their files, their limits and regions.

A container writes its region and may lease it (fcntl, F_SETLEASE), so the region is opened without waiting, and nothing
in it is trusted. The region is read before and after NVML is asked. A call of the container in between may change its
memory: then the most that was ever charged counts, and a program that allocates and frees in a loop is no finding.
"""

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar

from vgpu.adapters import procfs
from vgpu.adapters.procfs import FileId
from vgpu.adapters.slot_owners import SlotOwners
from vgpu.domain import names
from vgpu.domain.errors import MalformedLimits, MalformedRegion, StateUnusable
from vgpu.domain.formats import container_paths, limits, region
from vgpu.domain.formats.limits import CardLimit
from vgpu.domain.formats.region import CardUse
from vgpu.domain.identifiers import CardUuid
from vgpu.node.containers.allocations import Allocation
from vgpu.node.containers.state_files import StateFiles
from vgpu.node.processes.unlimited import Holder, Share

T = TypeVar("T")

_UNDER_WAY: Final = 0xFFFFFFFF  # mask of `region.calls`


@dataclass(frozen=True, slots=True)
class RegionAccount:
    """A region's account at one moment; `problem` says why the region could not be read.

    `outside_group`: how many processes say that they are no clients of their group's MPS server.
    """

    cards: Mapping[CardUuid, CardUse] = field(default_factory=dict)
    calls: Sequence[int] = ()
    problem: str = ""
    outside_group: int = 0


def read_around(
    allocations: Collection[Allocation], files: StateFiles, ask: Callable[[], T]
) -> tuple[T, dict[Holder, Share]]:
    """Call `ask`, and return its answer with the shares of proven allocations as they are at that time. Blocks."""
    judged = [
        allocation for allocation in allocations if allocation.holder is not None and _is_current(allocation, files)
    ]
    before = {current.id: read_account(files.region(current.id)) for current in judged}
    answer = ask()
    shares: dict[Holder, Share] = {}
    for allocation in sorted(allocations, key=lambda other: other.sequence):
        if allocation.holder is not None:
            accounts = (
                (before[allocation.id], read_account(files.region(allocation.id))) if allocation.id in before else None
            )
            shares[allocation.holder.uid, allocation.holder.container] = _share(allocation, files, accounts)
    return answer, shares


def read_account(path: Path, owners: SlotOwners | None = None) -> RegionAccount:
    """Read a region; where it cannot be read, the account is empty and says why.

    With `owners`, what processes used that have ended does not count, though the container has not cleared it yet.
    """
    try:
        with _opened(path) as handle:
            data = os.pread(handle, region.SIZE, 0)
            ended = owners.ended(handle, data) if owners else ()
        cards = {card.gpu: card for card in region.cards(data, ended)}
        return RegionAccount(cards, region.calls(data), outside_group=region.outside_group(data, ended))
    except BlockingIOError:
        return RegionAccount(problem="a process of the container holds a lease on it")
    except (OSError, MalformedRegion) as error:
        return RegionAccount(problem=str(error))


def read_region_header(path: Path) -> bytes:
    """Return the beginning of a region; empty where it cannot be read."""
    try:
        return _read(path, len(region.FIRST_HEADER))
    except OSError:
        return b""


def charged(before: RegionAccount, after: RegionAccount) -> dict[CardUuid, int]:
    """Return the most that a region may have said of each card between two readings, in bytes."""
    is_quiet = before.calls == after.calls and not any(call & _UNDER_WAY for call in after.calls)
    found: dict[CardUuid, int] = {}
    for card in (*before.cards.values(), *after.cards.values()):
        said = card.used_bytes if is_quiet else max(card.used_bytes, card.peak_bytes)
        found[card.gpu] = max(found.get(card.gpu, 0), said)
    return found


def _is_current(allocation: Allocation, files: StateFiles) -> bool:
    """Whether the container's library writes regions of this release's layout."""
    try:
        return files.libraries.region_header(allocation.library) == region.new()
    except StateUnusable:
        return False


def _share(allocation: Allocation, files: StateFiles, accounts: tuple[RegionAccount, RegionAccount] | None) -> Share:
    libraries = _ids(files.library(allocation.id), files.libraries.library(allocation.library))
    granted = read_limits(files.limits(allocation.id))
    memory = {card.gpu: card.memory_bytes for card in granted if card.memory_bytes is not None}
    is_whole = allocation.resource == names.CARD
    if accounts is None:
        return Share(libraries, limits=memory, is_whole=is_whole)
    mapped = {
        f"{container_paths.FILES}/limits": _ids(files.limits(allocation.id)),
        f"{container_paths.FILES}/region": _ids(files.region(allocation.id)),
    }
    before, after = accounts
    return Share(libraries, mapped, memory, charged(before, after), after.problem, is_whole)


def _ids(*paths: Path) -> frozenset[FileId]:
    found = set()
    for path in paths:
        try:
            found.add(procfs.file_id(path))
        except OSError:
            continue
    return frozenset(found)


def read_limits(path: Path) -> tuple[CardLimit, ...]:
    """Return the limits in force; none where they cannot be read."""
    try:
        return limits.decode(_read(path, limits.SIZE)).cards
    except (OSError, MalformedLimits):
        return ()


def _read(path: Path, size: int) -> bytes:
    """Read the beginning of a file. Raises OSError."""
    with _opened(path) as handle:
        return os.pread(handle, size, 0)


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    """Open a file without waiting for a lease on it. Raises OSError."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        yield handle
    finally:
        os.close(handle)
