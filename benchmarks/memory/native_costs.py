"""What each class of allocation costs the card without limits: the reference for the leak table.

It is measured, because it depends on the driver: arrays are padded, pools grow by chunks, a context takes hundreds of
MiB.
"""

from dataclasses import dataclass
from pathlib import Path

from benchmarks.container import native_env
from benchmarks.memory.nvml_watcher import Watcher
from benchmarks.memory.worker import MIB, MISSING, CommandOutcome, Worker

STEP = 64 * MIB
SMALL = 2 * MIB
SLACK = 48 * MIB  # a chunk of a pool, and memory that the driver takes for a moment
NEVER_CHARGED = ("host",)
WHOLE_CONTEXTS = (
    *("context", "stack limit", "heap limit", "printf limit", "local memory", "in a green context"),
    *("pending launches limit", "sync depth limit", "L2 fetch limit", "persisting L2 limit", "shared memory limit"),
    *("CIG limit", "CIG fallback limit", "per-block memory limit"),
)
AHEAD = ("pending launches limit",)  # charged when the limit is set, and taken when a kernel launches another, if ever
KEEPING = ("pool that keeps",)  # freed memory stays reserved for the pool
TRIED = (  # the size is known only after the allocation, which is undone when it is too large
    *("module variable", "library variable"),
    *("graph", "graph uploaded", "graph captured"),
)


@dataclass(frozen=True, slots=True)
class NativeCost:
    """One class of allocation without limits.

    Attributes:
        name: the class.
        answer: the first failure of an allocation, or a success.
        cost: bytes that an allocation of STEP takes of the card, after the first one.
        first: bytes that the first allocation takes.
        kept: bytes of each freed allocation that the driver keeps.
        hidden: bytes that NVML counts on the card and not with the process, such as the bookkeeping of a heap.
    """

    name: str
    answer: CommandOutcome
    cost: int
    first: int
    kept: int
    hidden: int

    @property
    def is_context(self) -> bool:
        """Whether each allocation makes a context: then its size is not the one asked for, and sizes differ."""
        return self.name in WHOLE_CONTEXTS

    @property
    def ahead(self) -> int:
        """Bytes of an allocation of STEP that the limiter charges, and the driver does not take."""
        return STEP if self.name in AHEAD else 0

    @property
    def is_available(self) -> bool:
        """Whether the driver allocates by this class at all, and it costs something."""
        return self.answer.result == 0 and self.cost > 0

    @property
    def reason(self) -> str:
        """Return why the class is not available."""
        if not self.answer.result:
            return "costs nothing here"
        return "not in this driver" if self.answer.result == MISSING else f"refused natively: {self.answer}"


def measure(watcher: Watcher, pipe: Path | None = None) -> tuple[int, list[NativeCost]]:
    """Return the bytes that a started process takes, and the cost of every class; with `pipe`, below that MPS."""
    watcher.await_free_memory()
    with Worker(native_env(pipe)) as worker:
        names: list[str] = worker.ask("classes")["classes"]
        start = watcher.used()
        sized = {name: _measure(watcher, worker, name) for name in names if name not in WHOLE_CONTEXTS}
    return start, [sized.get(name) or _measure_alone(watcher, name, pipe) for name in names]


def _measure_alone(watcher: Watcher, name: str, pipe: Path | None) -> NativeCost:
    """Measure a class whose cost depends on what its process did before."""
    watcher.await_free_memory()
    with Worker(native_env(pipe)) as worker:
        return _measure(watcher, worker, name)


def _measure(watcher: Watcher, worker: Worker, name: str) -> NativeCost:
    used = [watcher.used()]
    own = watcher.used_by(worker.pid)
    taken = []
    for _ in range(2):
        taken.append(worker.take(STEP, name))
        used.append(watcher.used())
    hidden = max(0, used[2] - used[0] - (watcher.used_by(worker.pid) - own)) // 2
    for step in taken:
        if not step.result:
            worker.give(step.id)
    kept = max(0, watcher.used() - used[0]) // 2
    least = 0 if name in WHOLE_CONTEXTS else STEP
    answer = next((step for step in taken if step.result), taken[-1])
    return NativeCost(name, answer, max(used[2] - used[1], least), max(used[1] - used[0], least), kept, hidden)
