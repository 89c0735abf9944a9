"""The cards of each job on this machine, as far as this user may read the files of its containers.

On a node root may read all of them; in a container nobody may read another one's.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

from limiter import local_state
from vgpu.cli.local import allocations
from vgpu.domain.formats.limits import ANY_GPU, Limits
from vgpu.domain.identifiers import CardUuid
from vgpu.workloads.hold import linked_cards

_FRESH_NS: Final = 2_000_000_000  # regions have a megabyte


class LinkedCardReader:
    """Reads the files when they are asked for, at most once in two seconds."""

    def __init__(self, directories: Sequence[Path], monotonic_ns: Callable[[], int]) -> None:
        """`directories`: the state directories (`allocations.state_directories`)."""
        self._directories = directories
        self._monotonic_ns = monotonic_ns
        self._joined: Sequence[frozenset[CardUuid]] = ()
        self._read_ns: int | None = None

    def of(self, gpu: CardUuid) -> frozenset[CardUuid]:
        """Return the other cards of the job that has a card."""
        now_ns = self._monotonic_ns()
        if self._read_ns is None or now_ns - self._read_ns >= _FRESH_NS:
            self._joined, self._read_ns = read_joined(self._directories), now_ns
        return linked_cards.linked_with(gpu, self._joined)


def read_joined(directories: Iterable[Path]) -> list[frozenset[CardUuid]]:
    """Return sets of cards: those that processes have joined, and those that the containers of one job use."""
    joined: list[frozenset[CardUuid]] = []
    jobs: dict[bytes, frozenset[CardUuid]] = {}
    for folder in (folder for directory in directories for folder in _folders(directory)):
        limits = allocations.read_limits(folder)
        if limits is None or not _may_be_of_a_job(limits):
            continue
        linked, used = allocations.read_linked_cards(folder)
        joined += linked
        if limits.job:
            jobs[limits.job] = jobs.get(limits.job, frozenset()) | used
    return joined + list(jobs.values())


def _folders(directory: Path) -> list[Path]:
    try:
        return list((directory / local_state.ALLOCATIONS).iterdir())
    except OSError:
        return []


def _may_be_of_a_job(limits: Limits) -> bool:
    return limits.job is not None or len(limits.cards) > 1 or any(card.gpu == ANY_GPU for card in limits.cards)
