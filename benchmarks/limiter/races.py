"""Many processes of one container at once: racing for the last bytes, and killed while they allocate."""

from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.limiter.programs import Program
from benchmarks.limiter.watcher import Watcher
from benchmarks.limiter.worker import MIB, Container, Worker, native_env

START_MIB = 1 << 20  # until what the contexts take is known
ROOM = 256 * MIB
SMALLEST = 2 * MIB
SLACK = 48 * MIB  # of NVML's figures: what the driver takes in passing
EACH_ROOM = 48 * MIB
NEAR = 16 * MIB  # of what NVML measured: contexts grow a little while they work
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


def race(watcher: Watcher, processes: int, rounds: int, seed: int) -> Outcome:
    """Let all of them fill the same room at the same moment, again and again."""
    outcome = Outcome(f"{processes} racing, {rounds} rounds")
    watcher.settle()
    with Container(str(START_MIB)) as container, Program(container.env, "race", processes, rounds, seed) as program:
        program.hear()
        contexts, limit = watcher.used(), container.used() + ROOM
        container.limit(limit)
        watcher.restart()
        program.go_on()
        said = program.hear()
        over = watcher.peak() - contexts - ROOM
        peak = max(card.peak_bytes for card in container.region().cards)
    outcome.figures = {**said, "room": ROOM, "peak over limit": peak - limit, "NVML over": over}
    outcome.check(peak <= limit, f"{peak - limit} bytes over the limit by the region")
    outcome.check(said["most"] <= ROOM, f"{said['most'] - ROOM} bytes over by the processes' own sums")
    outcome.check(
        said["least"] > ROOM - (1 + processes) * SMALLEST, f"refused with {(ROOM - said['least']) // MIB} MiB free"
    )
    outcome.check(said["wrong"] == 0, f"{said['wrong']} wrong codes")
    outcome.check(over <= SLACK + processes * SMALLEST, f"NVML over by {over // MIB} MiB")
    return outcome


def kill(watcher: Watcher, workers: int, kills: int, seed: int) -> Outcome:
    """Kill workers at random instants, and compare what the living hold with what is charged."""
    outcome = Outcome(f"{kills} kills among {workers}")
    watcher.settle()
    with Container(str(START_MIB)) as container, Program(container.env, "kills", workers, kills, seed) as program:
        program.hear()
        container.limit(container.used() + workers * EACH_ROOM)
        program.go_on()
        held = program.hear()
        container.limit(START_MIB * MIB)
        charged = charged_to_the_living(container, outcome)
        program.go_on()
        program.hear()
        charged -= charged_to_the_living(container, outcome)
        outcome.figures = {**held, "charged": charged, "recoveries": container.region().recoveries}
    outcome.check(abs(charged - held["held"]) <= NEAR, f"{held['held']} bytes held, {charged} charged")
    outcome.check(held["wrong"] == 0, f"{held['wrong']} wrong codes")
    outcome.check(held["longest_ns"] < LONGEST_NS, f"waited {held['longest_ns'] / 1e6:.1f} ms")
    return outcome


def kill_natively(workers: int, kills: int, seed: int) -> Outcome:
    """Do the same without limits, for the waits that are the driver's own."""
    with Program(native_env(), "kills", workers, kills, seed) as program:
        program.hear()
        program.go_on()
        return Outcome(f"{kills} kills among {workers}, natively", program.hear())


def charged_to_the_living(container: Container, outcome: Outcome) -> int:
    """Return what is charged once the dead are cleared away: one more process asks for too much, so that they are."""
    with Worker(container.env) as asker:
        asker.take(2 * START_MIB * MIB, "vmm handle")
        own = container.held_by(asker.pid)
        used, by_slots = container.used(), container.held_by()
        outcome.check(used == by_slots, f"{used} bytes used, {by_slots} by process")
        return used - own
