"""Processes that end, stop or exec while they hold the region's lock or memory that another process uses."""

import time
from collections.abc import Iterable

from benchmarks.container import LimitedContainer
from benchmarks.memory.nvml_watcher import Watcher
from benchmarks.memory.outcome import LONGEST_NS, SLACK, START_MIB, TrialOutcome, charged_to_living
from benchmarks.memory.worker import MIB, MISSING, CommandOutcome, Worker
from benchmarks.programs.process import CompiledProgram

LIMIT_MIB = 2048
SHARED = 512 * MIB
ASKED = 8 * MIB
TOO_MUCH = 2 * START_MIB * MIB
SOON_S = 5.0
VIEW_S = 0.2  # dead processes are in the limiter's figures for up to 100 ms
WAYS = {"ipc": "plain", "fd": "vmm handle", "pool": "shareable pool"}  # way of sharing: class of the shared memory


def inside_the_lock(end: str, steps: Iterable[int]) -> TrialOutcome:
    """Kill or stop a process at single instructions inside the region's lock, while a survivor allocates.

    The steps end where the process releases the lock. A killed process's account is cleared each time. A stopped
    process goes on to its end; its account stays until it is cleared, which must delay no process either.
    """
    outcome = TrialOutcome(f"{end} inside the lock")
    answers = []
    with LimitedContainer(str(START_MIB)) as container, Worker(container.env) as survivor:
        for step in steps:
            answer = _end_at(step, end, container, survivor, outcome)
            if answer is None:
                break
            answers.append(answer)
        living = charged_to_living(container, outcome)
        outcome.check(living == container.held_by(survivor.pid), f"{living} bytes charged to the living")
        recoveries = container.region().recoveries
    longest = max((answer.ns for answer in answers), default=0)
    outcome.figures = {"instants": len(answers), "longest_ns": longest, "recoveries": recoveries}
    outcome.check(bool(answers), "the lock was never found held")
    outcome.check(longest < LONGEST_NS, f"waited {longest / 1e6:.1f} ms")
    outcome.check(end == "stop" or recoveries == len(answers), f"{recoveries} recoveries of {len(answers)}")
    return outcome


def _end_at(
    step: int, end: str, container: LimitedContainer, survivor: Worker, outcome: TrialOutcome
) -> CommandOutcome | None:
    """Return the survivor's answer; None when the lock was released before that instruction.

    While the holder is stopped, a refusal is allowed; when it is dead, the allocation must succeed.
    """
    with CompiledProgram(container.env, "lock_holder", step, end) as program:
        if not program.read()["inside"]:
            return None
        answer = survivor.take(ASKED, "plain")
        if end == "stop":
            program.write()
        outcome.check(program.wait() == 0, f"stopped at {step}, the process itself failed")
    if end == "kill":
        outcome.check(not answer.result, f"killed at {step}, the survivor was refused: {answer}")
        survivor.take(TOO_MUCH, "vmm handle")  # before a refusal the accounts of dead processes are cleared
        used, held = container.used(), container.held_by(survivor.pid)
        outcome.check(used == held, f"killed at {step}, {used - held} bytes too much are charged")
    if not answer.result:
        survivor.give(answer.id)
    return answer


def exporter_killed(watcher: Watcher, how: str) -> TrialOutcome:
    """Kill the process whose memory another one has opened: the memory stays on the card and must stay charged."""
    outcome = TrialOutcome(f"exporter killed, {how}")
    watcher.await_free_memory()
    with (
        LimitedContainer(str(LIMIT_MIB)) as container,
        Worker(container.env) as exporter,
        Worker(container.env) as importer,
    ):
        before, own = container.used(), container.held_by(importer.pid)
        _, opened = _share(exporter, importer, how, outcome)
        if opened.result:
            return outcome
        together = container.used() - before
        outcome.check(abs(together - SHARED) <= SLACK, f"{together // MIB} MiB charged while both have it")
        exporter.kill()
        _refresh(importer)
        outcome.figures = {"charged": container.used() - own, "NVML": watcher.used()}
        outcome.check(container.used() - own >= SHARED, f"{(container.used() - own) // MIB} MiB stay charged")
        outcome.check(importer.free() <= LIMIT_MIB * MIB - SHARED, f"{importer.free() // MIB} MiB shown free")
        importer.give(opened.id)
        _refresh(importer)
        outcome.check(container.used() - own <= SLACK, f"{(container.used() - own) // MIB} MiB charged after the end")
    return outcome


def exporter_frees(watcher: Watcher) -> TrialOutcome:
    """Free and trim exported memory of a pool: it stays on the card and charged until the exporter ends."""
    outcome = TrialOutcome("exporter frees, pool")
    watcher.await_free_memory()
    with (
        LimitedContainer(str(LIMIT_MIB)) as container,
        Worker(container.env) as exporter,
        Worker(container.env) as importer,
    ):
        before, own = container.used(), container.held_by(importer.pid)
        held, opened = _share(exporter, importer, "pool", outcome)
        if opened.result:
            return outcome
        exporter.give(held.id)
        importer.give(opened.id)
        _refresh(exporter)
        charged = container.used() - before
        outcome.figures = {"charged": charged, "NVML": watcher.used()}
        outcome.check(abs(charged - SHARED) <= SLACK, f"{charged // MIB} MiB charged after it was freed")
        exporter.kill()
        _refresh(importer)
        outcome.check(container.used() - own <= SLACK, f"{(container.used() - own) // MIB} MiB charged after the end")
    return outcome


def _share(
    exporter: Worker, importer: Worker, how: str, outcome: TrialOutcome
) -> tuple[CommandOutcome, CommandOutcome]:
    """Return the answers to the exporter's allocation and to the importer's open, which may be MISSING here."""
    held = exporter.take(SHARED, WAYS[how])
    opened = held if held.result else importer.open(exporter, held.id, SHARED, how)
    outcome.check(opened.result in {0, MISSING}, f"cannot be shared here: {opened}")
    return held, opened


def _refresh(process: Worker) -> None:
    """Let the limiter look for dead processes."""
    time.sleep(VIEW_S)
    process.free()


def exec_without_cuda() -> TrialOutcome:
    """Let a process that holds memory exec a program without CUDA: its memory is free again."""
    outcome = TrialOutcome("exec")
    with LimitedContainer(str(LIMIT_MIB)) as container, Worker(container.env) as process:
        process.take(SHARED, "plain")
        process.exec("/bin/sleep", "60")
        begun = time.monotonic()
        while container.used() and time.monotonic() < begun + SOON_S:
            time.sleep(0.001)
        outcome.figures = {"charged": container.used(), "ms": int((time.monotonic() - begun) * 1000)}
        with Worker(container.env) as other:
            answer = other.take(other.free() - SLACK, "plain")
    outcome.check(outcome.figures["charged"] == 0, "still charged")
    outcome.check(not answer.result, f"not free for another: {answer}")
    return outcome
