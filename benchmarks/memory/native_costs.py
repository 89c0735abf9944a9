"""What every class of allocation costs the card without limits, so that nobody has to state it.

An array is padded, a pool grows by chunks, a context brings half a gigabyte.
"""

from dataclasses import dataclass

from benchmarks.memory.nvml_watcher import Watcher
from benchmarks.memory.worker import MIB, MISSING, Answer, Worker, native_env

STEP = 64 * MIB
SMALL = 2 * MIB
SLACK = 48 * MIB  # a pool's chunk, and what the driver takes in passing
NEVER_CHARGED = ("host",)
WHOLE_CONTEXTS = ("context", "stack limit", "heap limit", "printf limit", "local memory", "in a green context")
KEEPING = ("pool that keeps",)  # what is given back stays reserved for the pool
TRIED = (  # only the driver knows the size: it is made, looked at, taken back; a graph's where one left allocations
    *("module variable", "library variable"),
    *("graph", "graph uploaded", "graph captured"),
)


@dataclass(frozen=True, slots=True)
class Native:
    """A class without limits.

    Attributes:
        name: the class.
        answer: the first refusal of a take, which must be none.
        cost: what a take costs the card, in bytes, once one was taken.
        first: what the first costs.
        kept: what the driver keeps of each that was given back.
        hidden: what NVML counts on the card, but not on the process: a heap's bookkeeping, say.
    """

    name: str
    answer: Answer
    cost: int
    first: int
    kept: int
    hidden: int

    @property
    def is_context(self) -> bool:
        """Whether it makes a context each time: then it is no size that is asked for, and none is like the other."""
        return self.name in WHOLE_CONTEXTS


def measure(watcher: Watcher) -> tuple[int, list[Native]]:
    """Return what a started process costs the card, and every class."""
    watcher.settle()
    with Worker(native_env()) as worker:
        names: list[str] = worker.ask("classes")["classes"]
        start = watcher.used()
        linear = {name: _native(watcher, worker, name) for name in names if name not in WHOLE_CONTEXTS}
    return start, [linear.get(name) or _alone(watcher, name) for name in names]


def _alone(watcher: Watcher, name: str) -> Native:
    """Measure a class whose cost and leftovers hang on what its process did before."""
    watcher.settle()
    with Worker(native_env()) as worker:
        return _native(watcher, worker, name)


def _native(watcher: Watcher, worker: Worker, name: str) -> Native:
    used = [watcher.used()]
    own = watcher.used_by(worker.pid)
    taken = []
    for _ in range(2):
        taken.append(worker.take(STEP, name))
        used.append(watcher.used())
    hidden = max(0, used[2] - used[0] - (watcher.used_by(worker.pid) - own)) // 2
    for each in taken:
        if not each.result:
            worker.give(each.id)
    kept = max(0, watcher.used() - used[0]) // 2
    least = 0 if name in WHOLE_CONTEXTS else STEP
    answer = next((each for each in taken if each.result), taken[-1])
    return Native(name, answer, max(used[2] - used[1], least), max(used[1] - used[0], least), kept, hidden)


def is_there(native: Native) -> bool:
    """Whether the driver gives memory by this class at all, and it costs something."""
    return native.answer.result == 0 and native.cost > 0


def why_not(native: Native) -> str:
    """Why a class was left out."""
    if not native.answer.result:
        return "costs nothing here"
    return "not in this driver" if native.answer.result == MISSING else f"refused natively: {native.answer}"
