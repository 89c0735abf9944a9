"""One class of allocation under a limit: does all that fits succeed, is the rest refused, does the program go on?

What a take costs of the card is measured natively first, so that nobody has to state it here: an array is padded, a
pool grows by chunks, a context brings half a gigabyte.
"""

from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.limiter.watcher import Watcher
from benchmarks.limiter.worker import MIB, MISSING, OUT_OF_MEMORY, Answer, Container, Worker, native_env

STEP = 64 * MIB
SMALL = 2 * MIB
SLACK = 48 * MIB  # a pool's chunk, and what the driver takes in passing
NEVER_CHARGED = ("host",)
WHOLE_CONTEXTS = ("context", "stack limit", "heap limit", "printf limit", "local memory")
KEEPING = ("pool that keeps",)  # what is given back stays reserved for the pool


@dataclass(frozen=True, slots=True)
class Native:
    """A class without limits: the first refusal of a take, which must be none, and what one costs the card."""

    name: str
    answer: Answer
    cost: int


@dataclass(slots=True)
class Row:
    """A class under the limit. Sizes in bytes; `faults` says in words what was wrong, and is empty where nothing was.

    Attributes:
        name: the class.
        start_free: free before the first take.
        fitted: bytes taken by steps before the limit was near.
        left: free at the refusal of the smallest take.
        refusal: how the limit was told.
        peak: the most that NVML saw, the context among it.
    """

    name: str
    start_free: int = 0
    fitted: int = 0
    left: int = 0
    refusal: str = ""
    peak: int = 0
    faults: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Return the row for machines."""
        return asdict(self)


def measure_native(watcher: Watcher) -> tuple[int, list[Native]]:
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
            _Trial(worker, row, native).run()
        row.peak = watcher.peak()
        if row.peak > limit + uncovered(row.start_free, limit, start_cost):
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


class _Trial:
    """The steps of `measure`."""

    def __init__(self, worker: Worker, row: Row, native: Native) -> None:
        self.worker, self.row, self.native = worker, row, native
        self.held: list[int] = []

    def run(self) -> None:
        self.row.fitted = self.fill()
        self.go_past()
        self.go_on()
        if self.native.name not in WHOLE_CONTEXTS:
            self.fill_to_the_end()
        self.give_all()
        self.fill()

    def fault(self, text: str) -> None:
        self.row.faults.append(text)

    def take(self, size: int) -> Answer:
        answer = self.worker.take(size, self.row.name)
        if not answer.result:
            self.held.append(answer.id)
        return answer

    def fill(self) -> int:
        """Takes as many steps as must fit by what they cost natively; the bytes that did."""
        count = (self.row.start_free - SLACK) // self.native.cost
        for number in range(count):
            answer = self.take(STEP)
            if answer.result:
                self.fault(f"step {number + 1} of {count} refused with {self.worker.free() // MIB} MiB free: {answer}")
                return number * STEP
        off = self.row.start_free - count * self.native.cost - self.worker.free()
        if abs(off) > SLACK:
            self.fault(f"free is off by {off // MIB} MiB")
        return count * STEP

    def go_past(self) -> None:
        """More than is free, at once where the class has a size."""
        answer = self.take(self.worker.free() // MIB * MIB + STEP)
        self.row.refusal = str(answer)
        if not answer.result:
            self.fault("passes: more than was free")
            self.worker.give(self.held.pop())
        elif answer.result != OUT_OF_MEMORY:
            self.fault(f"wrong code: {answer}")

    def go_on(self) -> None:
        """A smaller one after the refusal; where the class has no small ones, a plain one."""
        name = "plain" if self.native.name in WHOLE_CONTEXTS else self.row.name
        answer = self.worker.take(SMALL, name)
        if answer.result:
            self.fault(f"does not go on: {answer}")
        else:
            self.held.append(answer.id)

    def fill_to_the_end(self) -> None:
        """Small ones until the refusal, which must not come while much is free."""
        for _ in range(2 * STEP // SMALL + SLACK // SMALL):
            answer = self.take(SMALL)
            if answer.result:
                break
        self.row.left = self.worker.free()
        if not answer.result:
            self.fault("passes: small ones never refused")
        elif answer.result != OUT_OF_MEMORY or self.row.left > SLACK:
            self.fault(f"small ones refused with {self.row.left // MIB} MiB free: {answer}")

    def give_all(self) -> None:
        answers = [self.worker.give(holding) for holding in self.held]
        self.held.clear()
        if any(answer.result for answer in answers):
            self.fault(f"cannot be given back: {next(answer for answer in answers if answer.result)}")
        missing = self.row.start_free - self.worker.free()
        if missing > SLACK and self.native.name not in KEEPING:
            self.fault(f"{missing // MIB} MiB stay charged")


def is_there(native: Native) -> bool:
    """Whether the driver gives memory by this class at all, and it costs something."""
    return native.answer.result == 0 and native.cost > 0


def why_not(native: Native) -> str:
    """Why a class was left out."""
    if not native.answer.result:
        return "costs nothing here"
    return "not in this driver" if native.answer.result == MISSING else f"refused natively: {native.answer}"
