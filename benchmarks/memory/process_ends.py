"""What a process leaves behind that ends, stops or becomes another program at the worst moment."""

import time
from collections.abc import Iterable

from benchmarks.memory.nvml_watcher import Watcher
from benchmarks.memory.races import LONGEST_NS, SLACK, START_MIB, Outcome, charged_to_the_living
from benchmarks.memory.worker import MIB, MISSING, Answer, Container, Worker
from benchmarks.programs.process import Program

LIMIT_MIB = 2048
SHARED = 512 * MIB
ASKED = 8 * MIB
TOO_MUCH = 2 * START_MIB * MIB
SOON_S = 5.0
VIEW_S = 0.2  # the view may show the dead for 100 ms
WAYS = {"ipc": "plain", "fd": "vmm handle", "pool": "shareable pool"}  # how it is shared: what is shared


def inside_the_lock(end: str, steps: Iterable[int]) -> Outcome:
    """Kill or stop a process at single instructions inside the region's lock, and let a survivor ask for memory.

    The steps end where the lock is given back. What was killed is taken off each time; what was stopped and went on to
    its end stays to be taken off, which must hold nobody up either.
    """
    outcome = Outcome(f"{end} inside the lock")
    answers = []
    with Container(str(START_MIB)) as container, Worker(container.env) as survivor:
        for step in steps:
            answer = _at(step, end, container, survivor, outcome)
            if answer is None:
                break
            answers.append(answer)
        living = charged_to_the_living(container, outcome)
        outcome.check(living == container.held_by(survivor.pid), f"{living} bytes charged to the living")
        recoveries = container.region().recoveries
    longest = max((answer.ns for answer in answers), default=0)
    outcome.figures = {"instants": len(answers), "longest_ns": longest, "recoveries": recoveries}
    outcome.check(bool(answers), "the lock was never found held")
    outcome.check(longest < LONGEST_NS, f"waited {longest / 1e6:.1f} ms")
    outcome.check(end == "stop" or recoveries == len(answers), f"{recoveries} recoveries of {len(answers)}")
    return outcome


def _at(step: int, end: str, container: Container, survivor: Worker, outcome: Outcome) -> Answer | None:
    """What the survivor got; None where the lock was held for fewer instructions.

    Where the holder is stopped, a refusal is the stated outcome; where it is dead, nothing may fail.
    """
    with Program(container.env, "lock_holder", step, end) as program:
        if not program.hear()["inside"]:
            return None
        answer = survivor.take(ASKED, "plain")
        if end == "stop":
            program.go_on()
        outcome.check(program.wait() == 0, f"stopped at {step}, the process itself failed")
    if end == "kill":
        outcome.check(not answer.result, f"killed at {step}, the survivor was refused: {answer}")
        survivor.take(TOO_MUCH, "vmm handle")  # the dead are taken off before a refusal
        used, held = container.used(), container.held_by(survivor.pid)
        outcome.check(used == held, f"killed at {step}, {used - held} bytes too much are charged")
    if not answer.result:
        survivor.give(answer.id)
    return answer


def exporter_killed(watcher: Watcher, how: str) -> Outcome:
    """Kill the process whose memory another has mapped: the memory lives, and so must its charge."""
    outcome = Outcome(f"exporter killed, {how}")
    watcher.settle()
    with Container(str(LIMIT_MIB)) as container, Worker(container.env) as exporter, Worker(container.env) as importer:
        before, own = container.used(), container.held_by(importer.pid)
        _, opened = _share(exporter, importer, how, outcome)
        if opened.result:
            return outcome
        together = container.used() - before
        outcome.check(abs(together - SHARED) <= SLACK, f"{together // MIB} MiB charged while both have it")
        exporter.kill()
        _look_again(importer)
        outcome.figures = {"charged": container.used() - own, "NVML": watcher.used()}
        outcome.check(container.used() - own >= SHARED, f"{(container.used() - own) // MIB} MiB stay charged")
        outcome.check(importer.free() <= LIMIT_MIB * MIB - SHARED, f"{importer.free() // MIB} MiB shown free")
        importer.give(opened.id)
        _look_again(importer)
        outcome.check(container.used() - own <= SLACK, f"{(container.used() - own) // MIB} MiB charged after the end")
    return outcome


def exporter_frees(watcher: Watcher) -> Outcome:
    """Free and trim what a pool has exported: the pool keeps it, in nobody's figure, until the exporter's end."""
    outcome = Outcome("exporter frees, pool")
    watcher.settle()
    with Container(str(LIMIT_MIB)) as container, Worker(container.env) as exporter, Worker(container.env) as importer:
        before, own = container.used(), container.held_by(importer.pid)
        held, opened = _share(exporter, importer, "pool", outcome)
        if opened.result:
            return outcome
        exporter.give(held.id)
        importer.give(opened.id)
        _look_again(exporter)
        charged = container.used() - before
        outcome.figures = {"charged": charged, "NVML": watcher.used()}
        outcome.check(abs(charged - SHARED) <= SLACK, f"{charged // MIB} MiB charged after it was freed")
        exporter.kill()
        _look_again(importer)
        outcome.check(container.used() - own <= SLACK, f"{(container.used() - own) // MIB} MiB charged after the end")
    return outcome


def _share(exporter: Worker, importer: Worker, how: str, outcome: Outcome) -> tuple[Answer, Answer]:
    """Let the one take memory and the other open it; the second answer says whether that can be done here."""
    held = exporter.take(SHARED, WAYS[how])
    opened = held if held.result else importer.open(exporter, held.id, SHARED, how)
    outcome.check(opened.result in {0, MISSING}, f"cannot be shared here: {opened}")
    return held, opened


def _look_again(process: Worker) -> None:
    time.sleep(VIEW_S)
    process.free()


def becomes_another_program() -> Outcome:
    """Let a process that holds memory exec a program without CUDA: what it held is free again."""
    outcome = Outcome("exec")
    with Container(str(LIMIT_MIB)) as container, Worker(container.env) as process:
        process.take(SHARED, "plain")
        process.become("/bin/sleep", "60")
        begun = time.monotonic()
        while container.used() and time.monotonic() < begun + SOON_S:
            time.sleep(0.001)
        outcome.figures = {"charged": container.used(), "ms": int((time.monotonic() - begun) * 1000)}
        with Worker(container.env) as other:
            answer = other.take(other.free() - SLACK, "plain")
    outcome.check(outcome.figures["charged"] == 0, "still charged")
    outcome.check(not answer.result, f"not free for another: {answer}")
    return outcome
