"""Many processes of one container at once, racing for the last bytes."""

from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.memory.nvml_watcher import Watcher
from benchmarks.memory.worker import MIB, Container, Worker
from benchmarks.programs.process import Program

START_MIB = 1 << 20  # until what the contexts take is known
ROOM = 256 * MIB
SMALLEST = 2 * MIB
SLACK = 48 * MIB  # of NVML's figures: what the driver takes in passing
LONGEST_NS = 100_000_000


@dataclass(slots=True)
class Outcome:
    """What a campaign found: figures by name, sizes in bytes, and in words what was wrong."""

    name: str
    figures: dict[str, int] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    def check(self, holds: bool, otherwise: str) -> None:
        """Note a fault unless it holds."""
        if not holds:
            self.faults.append(otherwise)

    def as_json(self) -> dict[str, Any]:
        """Return it for machines."""
        return asdict(self)


def race(watcher: Watcher, processes: int, rounds: int, seconds: int, seed: int) -> Outcome:
    """Let all of them fill the same room at the same moment, again and again, for so long at most."""
    outcome = Outcome(f"{processes} racing, {rounds} rounds")
    arguments = ("race", processes, rounds, seed, seconds)
    watcher.settle()
    with Container(str(START_MIB)) as container, Program(container.env, *arguments) as program:
        program.hear()
        contexts, limit = watcher.used(), container.used() + ROOM
        container.limit(limit)
        watcher.restart()
        program.go_on()
        said = program.hear()
        over = watcher.peak() - contexts - ROOM
        peak = max(card.peak_bytes for card in container.region().cards)
    outcome.figures = {**said, "room": ROOM, "peak over limit": peak - limit, "NVML over": over}
    outcome.check(said["rounds"] == rounds, f"{said['rounds']} rounds in {seconds} s")
    outcome.check(peak <= limit, f"{peak - limit} bytes over the limit by the region")
    outcome.check(said["most"] <= ROOM, f"{said['most'] - ROOM} bytes over by the processes' own sums")
    outcome.check(
        said["least"] > ROOM - (1 + processes) * SMALLEST, f"refused with {(ROOM - said['least']) // MIB} MiB free"
    )
    outcome.check(said["wrong"] == 0, f"{said['wrong']} wrong codes")
    outcome.check(over <= SLACK + processes * SMALLEST, f"NVML over by {over // MIB} MiB")
    return outcome


def charged_to_the_living(container: Container, outcome: Outcome) -> int:
    """Return what is charged once the dead are cleared away: one more process asks for too much, so that they are."""
    with Worker(container.env) as asker:
        asker.take(2 * START_MIB * MIB, "vmm handle")
        own = container.held_by(asker.pid)
        used, by_slots = container.used(), container.held_by()
        outcome.check(used == by_slots, f"{used} bytes used, {by_slots} by process")
        return used - own
