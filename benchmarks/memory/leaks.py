"""One class of allocation under a limit: what fits succeeds, the rest is refused, and the program can go on."""

from pathlib import Path
from typing import Final

from benchmarks.container import LimitedContainer
from benchmarks.memory.native_costs import NEVER_CHARGED, SLACK, STEP, TRIED, NativeCost
from benchmarks.memory.nvml_watcher import Watcher
from benchmarks.memory.trial import Findings, MemoryTrial
from benchmarks.memory.worker import MIB, NOT_SUPPORTED, Worker

UNIFIED: Final = ("managed",)  # unified memory, which a member of a group in space is refused (ADR 174)


def measure(watcher: Watcher, native: NativeCost, limit: int, start_cost: int, pipe: Path | None = None) -> Findings:
    """Test one class in a new process of a new container, a member of the daemon's group where there is a pipe."""
    watcher.await_free_memory()
    row = Findings(native.name)
    with LimitedContainer(str(limit // MIB), pipe=pipe) as container, Worker(container.env) as worker:
        assert_limited(worker, limit)
        row.start_free = worker.free()
        if native.name in NEVER_CHARGED:
            _check_host_memory(worker, row, limit)
        elif native.name in UNIFIED and pipe:
            _check_refusal(worker, row)
        else:
            MemoryTrial(worker, row, native).run()
        row.peak = watcher.peak()
        tried = row.tried if native.name in TRIED else 0
        if row.peak > limit + uncharged(row.start_free, limit, start_cost) + tried:
            row.faults.append("NVML over")
        if container.outside_group():
            row.faults.append("no client of the group's server")
    return row


def assert_limited(worker: Worker, limit: int) -> None:
    """Raise RuntimeError unless the limiter limits the process."""
    seen = worker.ask("info")
    if not seen["total"] == seen["whole"] == limit:
        raise RuntimeError(f"the limiter is not loaded or has another limit: {seen}")


def uncharged(start_free: int, limit: int, start_cost: int) -> int:
    """Return by how much NVML may exceed the limit: the uncharged part of a process's start, and some slack."""
    return max(0, start_cost - (limit - start_free)) + SLACK


def _check_host_memory(worker: Worker, row: Findings, limit: int) -> None:
    answer = worker.take(limit + STEP, row.name)
    row.refusal = str(answer)
    if answer.result or worker.free() < row.start_free:
        row.faults.append("the host's memory is charged")


def _check_refusal(worker: Worker, row: Findings) -> None:
    answer = worker.take(STEP, row.name)
    row.refusal = str(answer)
    if answer.result != NOT_SUPPORTED or row.start_free - worker.free() > SLACK:
        row.faults.append("unified memory is not refused")
