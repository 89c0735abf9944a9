"""The steps that test one class of allocation under a limit."""

import time
from dataclasses import asdict, dataclass, field

from benchmarks.memory.native_costs import KEEPING, SLACK, SMALL, STEP, NativeCost
from benchmarks.memory.worker import MIB, OUT_OF_MEMORY, CommandOutcome, Worker
from benchmarks.record import result

QUIET_S = 0.2  # memory of a kernel's first launch is charged after a delay


@dataclass(slots=True)
class Findings:
    """A class under the limit. Sizes in bytes.

    Attributes:
        name: the class.
        start_free: free before the first allocation.
        fitted: bytes allocated by steps before the limit.
        left: free when the smallest allocation was refused.
        refusal: the answer to an allocation past the limit.
        tried: size of that allocation.
        peak: NVML's highest figure, which includes the context.
        faults: what was wrong, in words.
    """

    name: str
    start_free: int = 0
    fitted: int = 0
    left: int = 0
    refusal: str = ""
    tried: int = 0
    peak: int = 0
    faults: list[str] = field(default_factory=list)

    def as_row(self) -> result.ResultRow:
        """Return the row of a result: the number of faults, with the sizes as details."""
        words = "; ".join(self.faults)[:1000]
        row_id = result.slug("leaks", self.name)
        return result.ResultRow(
            id=row_id, value=len(self.faults), unit="faults", goal="<= 0", fault=words, details=asdict(self)
        )


class MemoryTrial:
    """Fill up to the limit, exceed it, go on, fill the rest, free everything, fill again."""

    def __init__(self, worker: Worker, row: Findings, native: NativeCost) -> None:
        self.worker, self.row, self.native = worker, row, native
        self.held: list[int] = []
        self.lost = 0  # bytes of freed memory that the driver keeps, natively too

    def run(self) -> None:
        """Do all steps and write the results into the row."""
        self.row.fitted = self.fill()
        self.exceed()
        self.go_on()
        if not self.native.is_context:
            self.fill_the_rest()
        self._free_all()
        self.fill()

    def _fault(self, text: str) -> None:
        self.row.faults.append(text)

    def _take(self, size: int) -> CommandOutcome:
        answer = self.worker.take(size, self.row.name)
        if not answer.result:
            self.held.append(answer.id)
        return answer

    def fill(self) -> int:
        """Allocate as many steps as fit by their native cost; return the bytes that succeeded."""
        begun = self.row.start_free - self.lost
        count = (begun - SLACK) // (self.native.cost + self.native.ahead)
        for number in range(count):
            answer = self._take(STEP)
            if answer.result:
                self._fault(f"step {number + 1} of {count} refused with {self.worker.free() // MIB} MiB free: {answer}")
                return number * STEP
        if self.native.is_context:
            time.sleep(QUIET_S)
        off = begun - count * (self.native.cost + self.native.ahead) - self.worker.free()
        if abs(off) > SLACK + self._tolerance(count) and self.native.name not in KEEPING:
            self._fault(f"free is off by {off // MIB} MiB")
        return count * STEP

    def _tolerance(self, count: int) -> int:
        """Return by how much contexts may differ: the first from the others, and by memory of no process."""
        if not self.native.is_context:
            return 0
        return abs(self.native.first - self.native.cost) + count * self.native.hidden

    def exceed(self) -> None:
        """Allocate more than is free, in one allocation where the class has a size: it must be refused."""
        self.row.tried = self.worker.free() // SMALL * SMALL + STEP
        answer = self._take(self.row.tried)
        self.row.refusal = str(answer)
        if not answer.result:
            self._fault("passes: more than was free")
            self.worker.give(self.held.pop())
        elif answer.result != OUT_OF_MEMORY:
            self._fault(f"wrong code: {answer}")

    def go_on(self) -> None:
        """Allocate a small size after the refusal; by cuMemAlloc when the class has no small sizes."""
        name = "plain" if self.native.is_context else self.row.name
        answer = self.worker.take(SMALL, name)
        if answer.result:
            self._fault(f"does not go on: {answer}")
        else:
            self.held.append(answer.id)

    def fill_the_rest(self) -> None:
        """Allocate small sizes until the refusal, which must not come while much is free."""
        for _ in range(2 * STEP // SMALL + SLACK // SMALL):
            answer = self._take(SMALL)
            if answer.result:
                break
        self.row.left = self.worker.free()
        if not answer.result:
            self._fault("passes: small ones never refused")
        elif answer.result != OUT_OF_MEMORY or self.row.left > SLACK:
            self._fault(f"small ones refused with {self.row.left // MIB} MiB free: {answer}")

    def _free_all(self) -> None:
        answers = [self.worker.give(memory) for memory in self.held]
        self.held.clear()
        if any(answer.result for answer in answers):
            self._fault(f"cannot be given back: {next(answer for answer in answers if answer.result)}")
        self.lost = self.native.kept * len(answers) if self.native.is_context else 0
        missing = self.row.start_free - self.lost - self.worker.free()
        if missing > SLACK and self.native.name not in KEEPING:
            self._fault(f"{missing // MIB} MiB stay charged")
