"""Many processes of one container that race for the last bytes."""

from pathlib import Path

from benchmarks.container import LimitedContainer
from benchmarks.memory.nvml_watcher import Watcher
from benchmarks.memory.outcome import SLACK, START_MIB, TrialOutcome
from benchmarks.memory.worker import MIB
from benchmarks.programs.process import CompiledProgram

ROOM = 256 * MIB
SMALLEST = 2 * MIB


def race(
    watcher: Watcher, processes: int, rounds: int, seconds: int, seed: int, pipe: Path | None = None
) -> TrialOutcome:
    """Let all processes fill the same room at the same moment, for `rounds` rounds or until the seconds are over.

    With `pipe` they are clients of that daemon of MPS, and their container a member of its group.
    """
    outcome = TrialOutcome(f"{processes} racing, {rounds} rounds")
    arguments = ("race", processes, rounds, seed, seconds)
    watcher.await_free_memory()
    with (
        LimitedContainer(str(START_MIB), pipe=pipe) as container,
        CompiledProgram(container.env, *arguments) as program,
    ):
        program.read()
        outside = container.outside_group()
        contexts, limit = watcher.used(), container.used() + ROOM
        container.limit(limit)
        watcher.reset_peak()
        program.write()
        answer = program.read()
        over = watcher.peak() - contexts - ROOM
        peak = max(card.peak_bytes for card in container.region().cards)
    outcome.figures = {**answer, "room": ROOM, "peak over limit": peak - limit, "NVML over": over}
    outcome.check(answer["rounds"] == rounds, f"{answer['rounds']} rounds in {seconds} s")
    outcome.check(peak <= limit, f"{peak - limit} bytes over the limit by the region")
    outcome.check(answer["most"] <= ROOM, f"{answer['most'] - ROOM} bytes over by the processes' own sums")
    outcome.check(
        answer["least"] > ROOM - (1 + processes) * SMALLEST, f"refused with {(ROOM - answer['least']) // MIB} MiB free"
    )
    outcome.check(outside == 0, f"{outside} processes are no clients of the group's server")
    outcome.check(answer["wrong"] == 0, f"{answer['wrong']} wrong codes")
    outcome.check(over <= SLACK + processes * SMALLEST, f"NVML over by {over // MIB} MiB")
    return outcome
