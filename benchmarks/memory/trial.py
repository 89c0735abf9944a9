"""The steps by which one class of allocation is held to a limit."""

import time
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.memory.native_costs import KEEPING, SLACK, SMALL, STEP, Native
from benchmarks.memory.worker import MIB, OUT_OF_MEMORY, Answer, Worker

QUIET_S = 0.2  # what a kernel's first launch takes is measured when that is due


@dataclass(slots=True)
class Row:
    """A class under the limit. Sizes in bytes; `faults` says in words what was wrong, and is empty where nothing was.

    Attributes:
        name: the class.
        start_free: free before the first take.
        fitted: bytes taken by steps before the limit was near.
        left: free at the refusal of the smallest take.
        refusal: how the limit was told.
        tried: the bytes of the take that was more than was free.
        peak: the most that NVML saw, the context among it.
    """

    name: str
    start_free: int = 0
    fitted: int = 0
    left: int = 0
    refusal: str = ""
    tried: int = 0
    peak: int = 0
    faults: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Return the row for machines."""
        return asdict(self)


class Trial:
    """Fill, go past, go on, fill to the end, give all back, fill again."""

    def __init__(self, worker: Worker, row: Row, native: Native) -> None:
        self.worker, self.row, self.native = worker, row, native
        self.held: list[int] = []
        self.lost = 0  # what the driver keeps, natively too, of what was given back

    def run(self) -> None:
        """Do all of it, and write what came of it into the row."""
        self.row.fitted = self.fill()
        self.go_past()
        self.go_on()
        if not self.native.is_context:
            self.fill_to_the_end()
        self._give_all()
        self.fill()

    def _fault(self, text: str) -> None:
        self.row.faults.append(text)

    def _take(self, size: int) -> Answer:
        answer = self.worker.take(size, self.row.name)
        if not answer.result:
            self.held.append(answer.id)
        return answer

    def fill(self) -> int:
        """Takes as many steps as must fit by what they cost natively; the bytes that did."""
        begun = self.row.start_free - self.lost
        count = (begun - SLACK) // self.native.cost
        for number in range(count):
            answer = self._take(STEP)
            if answer.result:
                self._fault(f"step {number + 1} of {count} refused with {self.worker.free() // MIB} MiB free: {answer}")
                return number * STEP
        if self.native.is_context:
            time.sleep(QUIET_S)
        off = begun - count * self.native.cost - self.worker.free()
        if abs(off) > SLACK + self._apart(count) and self.native.name not in KEEPING:
            self._fault(f"free is off by {off // MIB} MiB")
        return count * STEP

    def _apart(self, count: int) -> int:
        """Return by how much contexts may differ: the first from the others, and by what is no process's."""
        if not self.native.is_context:
            return 0
        return abs(self.native.first - self.native.cost) + count * self.native.hidden

    def go_past(self) -> None:
        """More than is free, at once where the class has a size."""
        self.row.tried = self.worker.free() // SMALL * SMALL + STEP
        answer = self._take(self.row.tried)
        self.row.refusal = str(answer)
        if not answer.result:
            self._fault("passes: more than was free")
            self.worker.give(self.held.pop())
        elif answer.result != OUT_OF_MEMORY:
            self._fault(f"wrong code: {answer}")

    def go_on(self) -> None:
        """A smaller one after the refusal; where the class has no small ones, a plain one."""
        name = "plain" if self.native.is_context else self.row.name
        answer = self.worker.take(SMALL, name)
        if answer.result:
            self._fault(f"does not go on: {answer}")
        else:
            self.held.append(answer.id)

    def fill_to_the_end(self) -> None:
        """Small ones until the refusal, which must not come while much is free."""
        for _ in range(2 * STEP // SMALL + SLACK // SMALL):
            answer = self._take(SMALL)
            if answer.result:
                break
        self.row.left = self.worker.free()
        if not answer.result:
            self._fault("passes: small ones never refused")
        elif answer.result != OUT_OF_MEMORY or self.row.left > SLACK:
            self._fault(f"small ones refused with {self.row.left // MIB} MiB free: {answer}")

    def _give_all(self) -> None:
        answers = [self.worker.give(holding) for holding in self.held]
        self.held.clear()
        if any(answer.result for answer in answers):
            self._fault(f"cannot be given back: {next(answer for answer in answers if answer.result)}")
        self.lost = self.native.kept * len(answers) if self.native.is_context else 0
        missing = self.row.start_free - self.lost - self.worker.free()
        if missing > SLACK and self.native.name not in KEEPING:
            self._fault(f"{missing // MIB} MiB stay charged")
