"""What every class of allocation costs the card without limits, so that nobody has to state it.

An array is padded, a pool grows by chunks, a context brings half a gigabyte.
"""

from dataclasses import dataclass

from benchmarks.limiter.watcher import Watcher
from benchmarks.limiter.worker import MIB, MISSING, Answer, Worker, native_env

STEP = 64 * MIB
SMALL = 2 * MIB
SLACK = 48 * MIB  # a pool's chunk, and what the driver takes in passing
NEVER_CHARGED = ("host",)
WHOLE_CONTEXTS = ("context", "stack limit", "heap limit", "printf limit", "local memory", "in a green context")
KEEPING = ("pool that keeps",)  # what is given back stays reserved for the pool


@dataclass(frozen=True, slots=True)
class Native:
    """A class without limits: the first refusal of a take, which must be none, and what one costs the card."""

    name: str
    answer: Answer
    cost: int


def measure(watcher: Watcher) -> tuple[int, list[Native]]:
    """Return what a started process costs the card, and every class."""
    watcher.settle()
    with Worker(native_env()) as worker:
        names: list[str] = worker.ask("classes")["classes"]
        start = watcher.used()
        return start, [_native(watcher, worker, name) for name in names]


def _native(watcher: Watcher, worker: Worker, name: str) -> Native:
    first = worker.take(STEP, name)
    before = watcher.used()
    second = worker.take(STEP, name) if not first.result else first
    cost = max(watcher.used() - before, 0 if name in WHOLE_CONTEXTS else STEP)
    for taken in (first, second):
        if not taken.result:
            worker.give(taken.id)
    return Native(name, second, cost)


def is_there(native: Native) -> bool:
    """Whether the driver gives memory by this class at all, and it costs something."""
    return native.answer.result == 0 and native.cost > 0


def why_not(native: Native) -> str:
    """Why a class was left out."""
    if not native.answer.result:
        return "costs nothing here"
    return "not in this driver" if native.answer.result == MISSING else f"refused natively: {native.answer}"
