"""`vgpu diagnose`: reads what the options name, and shows the findings."""

import json
import os
import stat
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Final

from rich.console import Console

from limiter.host import Host
from vgpu.adapters import file_systems, given_file
from vgpu.cli.local.top import Output
from vgpu.domain import printable
from vgpu.domain.errors import MalformedError
from vgpu.workloads.diagnose import job, nccl_log, script, storage
from vgpu.workloads.diagnose.finding import ProgramDiagnosis, ProgramFinding
from vgpu.workloads.diagnose.script import parsing
from vgpu.workloads.diagnose.storage import FileSample

_MAX_FILES: Final = 100_000  # that are listed of a data set
_READ_FILES: Final = 200  # of these that are read
_READ_BYTES: Final = 256 << 20
_BLOCK: Final = 1 << 20
# Less says nothing about storage: it is read in about the time of opening a file.
_LEAST_BYTES: Final = 1_000_000
_LEAST_FILES: Final = 20
_MAX_LINE: Final = 65536
_LOG_BYTES: Final = 1 << 30  # of a log of NCCL that are read, in seconds


def of_script(path: Path) -> list[ProgramFinding]:
    """Diagnose a training script. Raises MalformedError."""
    with given_file.reading(path) as file:
        return script.diagnose(file.read(parsing.MAX_BYTES + 1))


def of_nccl_log(path: Path) -> list[ProgramFinding]:
    """Diagnose a log of NCCL, of which at most 1 GiB is read. Raises MalformedError."""
    with given_file.reading(path) as file:
        return nccl_log.check(_lines_of(file, _LOG_BYTES))


def of_job(path: Path, switch_label: str) -> list[ProgramFinding]:
    """Diagnose where the pods of jobs run. Raises MalformedError."""
    with given_file.reading(path) as file:
        return job.check(file.read(job.MAX_BYTES + 1), switch_label)


def of_data(folder: Path, needed_mb_per_s: float, host: Host) -> list[ProgramFinding]:
    """Diagnose the files of a data set; reads at most 200 of them, past the page cache. Raises MalformedError."""
    if not folder.is_dir():
        raise MalformedError(f"{folder}: not a folder")
    files = list(islice(_files(folder), _MAX_FILES))
    if not files:
        raise MalformedError(f"{folder}: has no file that can be seen")
    chosen = files[:: max(1, len(files) // _READ_FILES)][:_READ_FILES]
    begun = host.monotonic_ns()
    read = _read_all([path for path, _ in chosen])
    taken = host.monotonic_ns() - begun
    if read < _LEAST_BYTES and len(files) < _LEAST_FILES:
        raise MalformedError(
            f"{folder}: too little to measure its storage: {len(files)} files, {read} bytes; "
            f"give {_LEAST_FILES} files, or {_LEAST_BYTES // 1_000_000} MB"
        )
    sizes = [size for _, size in files]
    sample = FileSample(sizes, len(files) < _MAX_FILES, read, taken, file_systems.type_at(folder) or "")
    return list(storage.check(sample, needed_mb_per_s))


def show(made: ProgramDiagnosis, output: Output, console: Console) -> None:
    """Print findings, with their advice."""
    if output is Output.JSON:
        console.file.write(f"{json.dumps(made.as_json())}\n")
        return
    for line in _lines(made):
        console.print(printable.lines(line), highlight=False, markup=False, soft_wrap=True)


def _lines(made: ProgramDiagnosis) -> Iterator[str]:
    if not made.findings:
        yield f"{made.subject}: no findings"
    for finding in made.findings:
        where = f"{made.subject}:{finding.lines[0]}" if finding.lines else made.subject
        more = f" (also lines {', '.join(map(str, finding.lines[1:]))})" if len(finding.lines) > 1 else ""
        advice = finding.advice
        yield f"{where}: {finding.code}: {finding.seen}{more}"
        yield f"  why:  {advice.why}\n  cure: {advice.cure}\n  gain: {_bound(finding)}{advice.gain}"
    if made.sharing:
        yield f"{made.subject}: sharing: {made.sharing}"


def _bound(finding: ProgramFinding) -> str:
    return "" if finding.bound is None else f"at most {finding.bound:.1f} times as fast: "


def _lines_of(file: BinaryIO, most: int) -> Iterator[str]:
    """Yield the lines in about the first `most` bytes of a file; a line of more than 64 KiB comes in parts."""
    while most > 0 and (line := file.readline(_MAX_LINE)):
        most -= len(line)
        yield line.decode(errors="replace")


def _files(folder: Path) -> Iterator[tuple[str, int]]:
    """Yield the regular files below a folder, without following links."""
    for parent, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(parent, name)  # noqa: PTH118 - as os.walk gives it, for each of many files
            found = _status(path)
            if found is not None and stat.S_ISREG(found.st_mode):
                yield path, found.st_size


def _status(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError:
        return None


def _read_all(paths: Sequence[str]) -> int:
    total = 0
    for path in paths:
        if total < _READ_BYTES:
            total += _read_one(path, _READ_BYTES - total)
    return total


def _read_one(path: str, most: int) -> int:
    """Read at most so many bytes of a file from its storage, past the page cache; return the bytes that were read."""
    total = 0
    try:
        with given_file.reading(Path(path)) as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            while total < most and (block := file.read(min(_BLOCK, most - total))):
                total += len(block)
    except MalformedError:
        return total
    return total
