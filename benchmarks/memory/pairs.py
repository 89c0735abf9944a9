"""Two classes of allocation in one process: memory of the first is not free for the second until it is freed."""

from collections.abc import Iterator, Sequence

from benchmarks.container import LimitedContainer
from benchmarks.memory import leaks
from benchmarks.memory.native_costs import KEEPING, NEVER_CHARGED, SLACK, SMALL, STEP, TRIED, WHOLE_CONTEXTS, NativeCost
from benchmarks.memory.nvml_watcher import Watcher
from benchmarks.memory.worker import MIB, OUT_OF_MEMORY, Worker

COARSE = STEP * 3 // 2  # a class whose step costs more does not allocate the size asked for


def pairable(natives: Sequence[NativeCost]) -> list[str]:
    """Return the classes that can be paired: they are charged, and have any size."""
    left_out = {*NEVER_CHARGED, *WHOLE_CONTEXTS}
    available = [native for native in natives if native.is_available and native.name not in left_out]
    return [native.name for native in available if native.cost <= COARSE]


def measure(watcher: Watcher, first: str, seconds: Sequence[str], limit: int, start_cost: int) -> dict[str, str]:
    """Return the faults of each pair that begins with `first`, by the second class; empty = none.

    NVML may show more than the limit for a moment where a class of TRIED allocates before its size is known.
    """
    watcher.await_free_memory()
    with LimitedContainer(str(limit // MIB)) as container, Worker(container.env) as worker:
        leaks.assert_limited(worker, limit)
        start = worker.free()
        found = {}
        for second in seconds:
            watcher.reset_peak()
            faults = list(_faults(worker, first, second, start))
            tried = _most(start) if {first, second} & set(TRIED) else 0
            if watcher.peak() > limit + leaks.uncharged(start, limit, start_cost) + tried:
                faults.append(f"NVML over by {(watcher.peak() - limit) // MIB} MiB")
            found[second] = "; ".join(faults)
        return found


def _most(start: int) -> int:
    """Return a size that fits once and not twice."""
    return start * 6 // 10 // SMALL * SMALL


def _faults(worker: Worker, first: str, second: str, start: int) -> Iterator[str]:
    most = _most(start)
    keeps = bool({first, second} & set(KEEPING))  # until another allocation needs the memory
    taken = worker.take(most, first)
    if taken.result:
        yield f"the first refused: {taken}"
        return
    yield from _held_to_the_rest(worker, second, most)
    if (given := worker.give(taken.id)).result:
        yield f"the first not given back: {given}"
    yield from _fits(worker, second, most)
    if start - worker.free() > SLACK and not keeps:
        yield f"{(start - worker.free()) // MIB} MiB stay charged"


def _held_to_the_rest(worker: Worker, second: str, most: int) -> Iterator[str]:
    over = worker.take(most, second)
    if over.result == 0:
        yield "passes"
        worker.give(over.id)
    elif over.result != OUT_OF_MEMORY:
        yield f"wrong code: {over}"
    yield from _fits(worker, second, worker.free() - SLACK - STEP)


def _fits(worker: Worker, name: str, size: int) -> Iterator[str]:
    answer = worker.take(max(size, SMALL) // SMALL * SMALL, name)
    if answer.result:
        yield f"{size // MIB} MiB refused with {worker.free() // MIB} free: {answer}"
    elif (given := worker.give(answer.id)).result:
        yield f"the second not given back: {given}"
