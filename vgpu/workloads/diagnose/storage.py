"""Whether the files of a data set slow a program down: many small ones, or a slow medium."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from vgpu.workloads.diagnose.catalogue import FindingCode
from vgpu.workloads.diagnose.finding import ProgramFinding

_MANY: Final = 1000  # files
_SMALL_BYTES: Final = 256 << 10
_MB: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class FileSample:
    """A part of a data set's files that was read once.

    Attributes:
        sizes: of all files that were listed, in bytes.
        is_all: whether these are all files.
        read_bytes: bytes that were read.
        read_ns: what reading them took.
        file_system: type of the file system, such as nfs4; empty where it is not known.
    """

    sizes: Sequence[int]
    is_all: bool
    read_bytes: int
    read_ns: int
    file_system: str = ""

    @property
    def mb_per_s(self) -> float:
        """Rate at which one reader read, in MB/s."""
        return self.read_bytes / _MB / (self.read_ns / 1e9) if self.read_ns else 0.0


def check(sample: FileSample, needed_mb_per_s: float) -> Iterator[ProgramFinding]:
    """Judge a sample against the rate that a program needs."""
    median = sorted(sample.sizes)[len(sample.sizes) // 2] if sample.sizes else 0
    if len(sample.sizes) >= _MANY and median < _SMALL_BYTES:
        count = f"{len(sample.sizes):,} files" if sample.is_all else f"more than {len(sample.sizes):,} files"
        yield ProgramFinding(FindingCode.SMALL_FILES, (), f"{count}, the median of {median >> 10} KiB")
    if sample.read_bytes and sample.mb_per_s < needed_mb_per_s:
        medium = f" from {sample.file_system}" if sample.file_system else ""
        needed = f"less than the {needed_mb_per_s:,.0f} MB/s that are needed"
        seen = f"one reader got {sample.mb_per_s:,.0f} MB/s{medium}, {needed}"
        yield ProgramFinding(FindingCode.SLOW_STORAGE, (), seen)
