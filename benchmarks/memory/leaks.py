"""One class of allocation under a limit: does all that fits succeed, is the rest refused, does the program go on?"""

from benchmarks.memory.native_costs import NEVER_CHARGED, SLACK, STEP, TRIED, Native
from benchmarks.memory.nvml_watcher import Watcher
from benchmarks.memory.trial import Row, Trial
from benchmarks.memory.worker import MIB, Container, Worker


def measure(watcher: Watcher, native: Native, limit: int, start_cost: int) -> Row:
    """Hold one class, in a process and a container of its own, to the limit."""
    watcher.settle()
    row = Row(native.name)
    with Container(str(limit // MIB)) as container, Worker(container.env) as worker:
        assert_limited(worker, limit)
        row.start_free = worker.free()
        if native.name in NEVER_CHARGED:
            _hold_host(worker, row, limit)
        else:
            Trial(worker, row, native).run()
        row.peak = watcher.peak()
        tried = row.tried if native.name in TRIED else 0
        if row.peak > limit + uncovered(row.start_free, limit, start_cost) + tried:
            row.faults.append("NVML over")
    return row


def assert_limited(worker: Worker, limit: int) -> None:
    """Raise RuntimeError unless the limiter is at work in the process."""
    seen = worker.ask("info")
    if not seen["total"] == seen["whole"] == limit:
        raise RuntimeError(f"the limiter is not at work: {seen}")


def uncovered(start_free: int, limit: int, start_cost: int) -> int:
    """Return by how much NVML may be over: what a process costs at its start and is not charged, and some slack."""
    return max(0, start_cost - (limit - start_free)) + SLACK


def _hold_host(worker: Worker, row: Row, limit: int) -> None:
    answer = worker.take(limit + STEP, row.name)
    row.refusal = str(answer)
    if answer.result or worker.free() < row.start_free:
        row.faults.append("the host's memory is charged")
