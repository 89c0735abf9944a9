"""`vgpu set`: other limits for what runs already, in force within two seconds."""

import fcntl
import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from limiter import local_state
from vgpu import limits, quantity
from vgpu.errors import MalformedLimits, VgpuError
from vgpu.limits import CardLimit, Limits
from vgpu.policy import ComputePolicy, default_compute_policy


class CannotChange(VgpuError):
    """There is no such allocation, or its limits cannot be rewritten."""


def find(places: Iterable[Path], wanted: str) -> Path:
    """Return the directory of the one allocation whose ID begins so. Raises CannotChange."""
    every = [each for place in places for each in _folders(place) if wanted and each.name.startswith(wanted)]
    found = [each for each in every if each.name == wanted] or every
    if len(found) != 1:
        raise CannotChange(f"{wanted}: {'more than one begins so' if found else 'no such ID; see `vgpu top`'}")
    return found[0]


def changed(
    former: Limits, memory: str | None, cores: int | None, policy: ComputePolicy | None, priority: int | None
) -> Limits:
    """Return the limits with what is given in place of what was, on every card. Raises ValueError.

    Who had no share and is given one without a policy has it as a limit, as if started so.
    """
    had_cores = any(card.cores for card in former.cards)
    if policy is None and cores is not None and not had_cores:
        policy = default_compute_policy(cores)
    size = None if memory is None else quantity.size_bytes(memory)
    if memory is not None and size is None:
        raise ValueError(f"--gpu-mem: not an amount of memory: {memory!r}; write `8GiB`, or MiB as a plain number")
    if policy is ComputePolicy.FIXED and not had_cores and not cores:
        raise ValueError("--compute-policy: fixed means a share that is never passed; give --gpu-cores too")
    return replace(
        former,
        cards=tuple(_changed_card(card, size, cores) for card in former.cards),
        compute_policy=policy or former.compute_policy,
        priority=former.priority if priority is None else priority,
    )


def rewrite(
    folder: Path, memory: str | None, cores: int | None, policy: ComputePolicy | None, priority: int | None
) -> None:
    """Put other limits in force in an allocation. Raises CannotChange and ValueError."""
    try:
        with (folder / "limits").open("r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # or two writers would fill the same slot
            data = file.read(limits.SIZE)
            for offset, piece in limits.rewrite(data, changed(limits.decode(data), memory, cores, policy, priority)):
                os.pwrite(file.fileno(), piece, offset)
    except (OSError, MalformedLimits) as error:
        raise CannotChange(f"{folder.name}: {error}") from error


def _changed_card(card: CardLimit, size: int | None, cores: int | None) -> CardLimit:
    return replace(
        card,
        memory_bytes=card.memory_bytes if size is None else size,
        cores=card.cores if cores is None else cores,
    )


def _folders(place: Path) -> Sequence[Path]:
    try:
        return [*(place / local_state.ALLOCATIONS).iterdir()]
    except OSError:
        return []
