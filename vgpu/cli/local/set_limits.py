"""`vgpu set`: new limits for an allocation that is running, in force within two seconds."""

import fcntl
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from limiter import local_state
from vgpu.cli.failure import NOT_FOUND, CommandFailed
from vgpu.cli.local import cards
from vgpu.cli.local.cards import LocalCards
from vgpu.domain import quantity
from vgpu.domain.asks.policy import ComputePolicy, default_compute_policy
from vgpu.domain.errors import MalformedLimits, VgpuError
from vgpu.domain.formats import limits
from vgpu.domain.formats.limits import CardLimit, Limits


class CannotSetLimits(VgpuError):
    """The limits of an allocation cannot be rewritten."""


@dataclass(frozen=True, slots=True)
class LimitsChange:
    """What to change; None leaves a value as it is.

    Attributes:
        memory: of each card, as text: `8GiB`, or MiB as a plain number.
        cores: percent of each card's time.
        policy: the compute policy.
        priority: 0 to 100.
    """

    memory: str | None = None
    cores: int | None = None
    policy: ComputePolicy | None = None
    priority: int | None = None


def find_allocation(directories: Iterable[Path], wanted: str) -> Path:
    """Return the directory of the one allocation whose ID begins with `wanted`. Raises CommandFailed."""
    every = [
        allocation_folder
        for path in directories
        for allocation_folder in _allocation_folders(path)
        if wanted and allocation_folder.name.startswith(wanted)
    ]
    found = [folder for folder in every if folder.name == wanted] or every
    if len(found) != 1:
        problem = "more than one ID begins like this" if found else "no such ID; see `vgpu top`"
        raise CommandFailed(f"{wanted}: {problem}", NOT_FOUND)
    return found[0]


def changed_limits(former: Limits, change: LimitsChange) -> Limits:
    """Return the limits with the change applied to every card. Raises ValueError.

    An allocation that had no cores and gets some without a policy gets the default policy, as `vgpu run` would give it.
    """
    if former.space is not None and change.policy is not None:
        raise ValueError("--compute-policy: the program is in a group in space, which is a policy itself")
    had_cores = any(card.cores for card in former.cards)
    policy = change.policy
    if policy is None and change.cores is not None and not had_cores and former.space is None:
        policy = default_compute_policy(change.cores)
    size = None if change.memory is None else _size(change.memory)
    if policy is ComputePolicy.FIXED and not had_cores and not change.cores:
        raise ValueError("--compute-policy: fixed limits the time to a share; give --gpu-cores too")
    return replace(
        former,
        cards=tuple(_changed_card(card, size, change.cores) for card in former.cards),
        compute_policy=policy or former.compute_policy,
        priority=former.priority if change.priority is None else change.priority,
    )


def _size(text: str) -> int:
    try:
        return quantity.limit_bytes(text)
    except ValueError as error:
        raise ValueError(f"--gpu-mem: {error}") from None


def set_limits(folder: Path, change: LimitsChange, found: LocalCards = cards.UNKNOWN) -> None:
    """Change the limits of an allocation, unless its memory would be more than a card has.

    Raises CannotSetLimits and ValueError.
    """
    try:
        with _only_writer(folder), _opened(folder / "limits") as file:
            data = file.read(limits.SIZE)
            wanted = changed_limits(limits.decode(data), change)
            _refuse_beyond(found, wanted)
            for offset, piece in limits.rewrite(data, wanted):
                os.pwrite(file.fileno(), piece, offset)
    except BlockingIOError as error:
        raise CannotSetLimits(f"{folder.name}: a program of the container holds a lease on its limits") from error
    except (OSError, MalformedLimits) as error:
        raise CannotSetLimits(f"{folder.name}: {error}") from error


def _refuse_beyond(found: LocalCards, wanted: Limits) -> None:
    if problem := next(filter(None, (cards.beyond(found, card) for card in wanted.cards)), ""):
        raise ValueError(f"--gpu-mem: {problem}")


@contextmanager
def _only_writer(folder: Path) -> Iterator[None]:
    """Lock an allocation: two writers would fill the same slot.

    The lock is on the directory, because a container sees the limits file, and could hold a lock on it for ever.
    """
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _opened(path: Path) -> BinaryIO:
    """Open a limits file; without O_NONBLOCK this would wait for 45 s while the container holds a lease on it."""
    return os.fdopen(os.open(path, os.O_RDWR | os.O_NONBLOCK), "r+b")


def _changed_card(card: CardLimit, size: int | None, cores: int | None) -> CardLimit:
    return replace(
        card,
        memory_bytes=card.memory_bytes if size is None else size,
        cores=card.cores if cores is None else cores,
    )


def _allocation_folders(directory: Path) -> Sequence[Path]:
    try:
        return [*(directory / local_state.ALLOCATIONS).iterdir()]
    except OSError:
        return []
