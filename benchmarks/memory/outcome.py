"""The outcome of a campaign with many processes, and the check that all campaigns share."""

from dataclasses import asdict, dataclass, field

from benchmarks.container import LimitedContainer
from benchmarks.memory.worker import MIB, Worker
from benchmarks.record import result

START_MIB = 1 << 20  # a limit that is never reached, until the memory of the contexts is known
LONGEST_NS = 100_000_000  # the goal for the longest call of a survivor
SLACK = 48 * MIB  # of NVML's figures: memory that the driver takes for a moment


@dataclass(slots=True)
class TrialOutcome:
    """Figures by name, sizes in bytes; and what was wrong, in words."""

    name: str
    figures: dict[str, int] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    def check(self, holds: bool, otherwise: str) -> None:
        """Add a fault unless the condition holds."""
        if not holds:
            self.faults.append(otherwise)

    def as_row(self, campaign: str) -> result.ResultRow:
        """Return the row of a result: the number of faults, with the figures as details."""
        words = "; ".join(self.faults)[:1000]
        row_id = result.slug("races", campaign, self.name)
        return result.ResultRow(
            id=row_id, value=len(self.faults), unit="faults", goal="<= 0", fault=words, details=asdict(self)
        )


def charged_to_living(container: LimitedContainer, outcome: TrialOutcome) -> int:
    """Return the bytes charged to living processes.

    A new process asks for more than the limit, which makes the limiter clear the accounts of dead processes.
    """
    with Worker(container.env) as asker:
        asker.take(2 * START_MIB * MIB, "vmm handle")
        own = container.held_by(asker.pid)
        used, by_slots = container.used(), container.held_by()
        outcome.check(used == by_slots, f"{used} bytes used, {by_slots} by process")
        return used - own
