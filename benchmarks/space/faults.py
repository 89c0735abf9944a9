"""A fault matrix of groups in space on a card: what happens to a member, a daemon or the supervisor.

    python -m benchmarks.space.faults [CASE ...] --json FILE

Each case has a supervisor of its own, a group of two members, another group, and a container of fixed 30 that works
all the time. A row says after how many seconds a new member runs, and its details the rest: the fixed share's longest
time between two kernels before and during the case, what the other member gets, who is told, and what is left running.
Needs nvidia-cuda-mps-control and the first card for itself. Exits with 1 where anything is not as it must be.
"""

import argparse
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.container import GROUP
from benchmarks.record import recorder, result
from benchmarks.record.recorder import ResultRecorder
from benchmarks.record.result import ResultRow
from benchmarks.space.stage import ANSWER_S, FaultStage, until, works
from vgpu.domain.asks.space import MAX_CLIENTS, SpaceGroup
from vgpu.domain.identifiers import Namespace

SOURCES: Final = ("limiter/src", "limiter/arbiter", "vgpu/node/space", "benchmarks/space")
SERVED_S: Final = 10.0  # within which a card serves a new member, whatever happened
STALL_MS: Final = 300.0  # a fault keeps other programs of the card waiting for 0.2 s
LONG_STALL_MS: Final = 4500.0  # a kernel may run for 4 s where its guarantee pays for it (ADR 173)
BASE_S: Final = 1.0
TOLD_S: Final = 3.0
LONG_US, ENDLESS_US = 2_000_000, 3_600_000_000
OUT_OF_MEMORY, ILLEGAL_ADDRESS, MAX_CLIENTS_REACHED = 2, 700, 808
MUCH_MIB: Final = 1 << 30
THIRD: Final = SpaceGroup(Namespace("benchmark"), "third")


@dataclass(frozen=True, slots=True)
class FaultCase:
    """Something that happens, and what must follow from it.

    Attributes:
        name: of the row.
        happen: lets it happen, and returns what was wrong, in words.
        spares_group: whether the other member of the group goes on.
        is_told: whether the group's members are told of a fault.
        most_stall_ms: for which the fixed share may wait.
        new: the group of the member that is started afterwards.
        counts_at_end: whether a new member is waited for since the end of what happens, and not since its begin.
    """

    name: str
    happen: Callable[[FaultStage], list[str]]
    spares_group: bool = True
    is_told: bool = False
    most_stall_ms: float = STALL_MS
    new: SpaceGroup = GROUP
    counts_at_end: bool = False


def illegal_access(stage: FaultStage) -> list[str]:
    """The member writes to an address that does not exist."""
    stage.hit.within(ANSWER_S, "fault")
    found = stage.hit.within(ANSWER_S, "sync"), works(stage.neighbour)
    stage.hit.end()
    stage.neighbour.end()
    return [] if found == (ILLEGAL_ADDRESS,) * 2 else [f"the members get {found}"]


def stopped_in_a_fault(stage: FaultStage) -> list[str]:
    """The other member is stopped when the fault happens, so that it never exits."""
    stage.neighbour.process.send_signal(signal.SIGSTOP)
    stage.hit.within(ANSWER_S, "fault")
    found = stage.hit.within(ANSWER_S, "sync")
    stage.hit.end()
    return [] if found == ILLEGAL_ADDRESS else [f"the member gets {found}"]


def abort(stage: FaultStage) -> list[str]:
    """The member aborts while its kernel runs."""
    stage.hit.within(ANSWER_S, f"spin {LONG_US}")
    stage.hit.tell("abort")
    return [] if stage.hit.process.wait(ANSWER_S) == -signal.SIGABRT else ["the member does not end"]


def killed(stage: FaultStage) -> list[str]:
    """The member is killed while its kernel runs."""
    stage.hit.within(ANSWER_S, f"spin {LONG_US}")
    stage.hit.end()
    return []


def stopped(stage: FaultStage) -> list[str]:
    """The member is stopped while its kernels run."""
    stage.hit.tell("throughput 500 60")
    time.sleep(0.2)
    stage.hit.process.send_signal(signal.SIGSTOP)
    return []


def out_of_memory(stage: FaultStage) -> list[str]:
    """The member asks for more memory than the card has."""
    found = stage.hit.within(ANSWER_S, f"alloc {MUCH_MIB}"), works(stage.hit)
    return [] if found == (OUT_OF_MEMORY, 0) else [f"the member gets {found}"]


def endless(stage: FaultStage) -> list[str]:
    """The member launches a kernel that never ends, and is killed after a while, as a deleted pod is."""
    stage.hit.within(ANSWER_S, f"spin {ENDLESS_US}")
    time.sleep(6)
    stage.hit.end()
    return []


def _kill(stage: FaultStage, *, is_server: bool) -> list[str]:
    found = [one for one in stage.supervisor.processes(stage.on_card(GROUP)) if one.is_server == is_server]
    for process in found:
        process.kill()
    time.sleep(0.5)
    results = works(stage.hit), works(stage.neighbour)
    stage.hit.end()
    stage.neighbour.end()
    return ([] if found else ["none runs"]) + ([] if all(results) else [f"the members get {results}"])


def server_killed(stage: FaultStage) -> list[str]:
    """The group's server is killed."""
    return _kill(stage, is_server=True)


def daemon_killed(stage: FaultStage) -> list[str]:
    """The group's daemon is killed."""
    return _kill(stage, is_server=False)


def supervisor_killed(stage: FaultStage) -> list[str]:
    """The supervisor is killed; the member that is started afterwards is the first of its group."""
    before = stage.supervisor.pid()
    os.kill(before, signal.SIGKILL)
    is_replaced = until(lambda: stage.supervisor.pid() not in {0, before}, ANSWER_S)
    return [] if is_replaced and works(stage.hit) == 0 else ["it is not replaced, or the member fails"]


def too_many(stage: FaultStage) -> list[str]:
    """As many processes as a server serves, and one more, which is refused."""
    clients = [stage.session() for _ in range(MAX_CLIENTS - 2)]
    for client in clients:
        client.tell("start")
    results = [client.answer() for client in clients]
    one_more = stage.session()
    refused = one_more.within(ANSWER_S, "init") or one_more.within(ANSWER_S, "start")
    wrong = [] if not any(results) else [f"{sum(map(bool, results))} of {MAX_CLIENTS} are refused"]
    clients[0].end()
    one_more.end()
    return wrong + ([] if refused == MAX_CLIENTS_REACHED else [f"the {MAX_CLIENTS + 1}th gets {refused}"])


CASES: Final = (
    FaultCase("illegal access", illegal_access, spares_group=False, is_told=True),
    FaultCase("illegal access, another member stopped", stopped_in_a_fault, spares_group=False, is_told=True),
    FaultCase("abort", abort),
    FaultCase("kill -9", killed),
    FaultCase("SIGSTOP", stopped),
    FaultCase("out of memory", out_of_memory),
    FaultCase("endless kernel", endless, most_stall_ms=LONG_STALL_MS, counts_at_end=True),
    FaultCase("server killed", server_killed, spares_group=False),
    FaultCase("daemon killed", daemon_killed, spares_group=False),
    FaultCase("supervisor killed", supervisor_killed, new=THIRD),
    FaultCase(f"{MAX_CLIENTS + 1} clients", too_many, counts_at_end=True),
)


def row_id(name: str) -> str:
    """Return the id of a case's row."""
    return result.slug("space-faults", name)


def measure(case: FaultCase) -> ResultRow:
    """Let a case happen on a stage of its own."""
    with FaultStage() as stage:
        stage.fixed.tell("beside 500")
        time.sleep(BASE_S)
        _, before_ms, _ = stage.fixed.beside()
        stage.fixed.tell("beside 500")
        begun = time.monotonic()
        wrong = case.happen(stage)
        served_s = stage.seconds_until_served(case.new, time.monotonic() if case.counts_at_end else begun)
        _, stall_ms, fixed = stage.fixed.beside()
        group = works(stage.neighbour) if case.spares_group else None
        elsewhere = works(stage.elsewhere)
        told = await_told(stage, is_told=case.is_told)
        left = stage.left()
    wrong += [f"another group gets {elsewhere}"] if elsewhere != 0 else []
    wrong += [f"fixed 30 gets {fixed}"] if fixed else []
    wrong += [f"the other member gets {group}"] if case.spares_group and group != 0 else []
    details = {"stall_before_ms": before_ms, "stall_ms": stall_ms, "told": told, "left": left, "wrong": wrong}
    return judged(case, served_s, details)


def await_told(stage: FaultStage, *, is_told: bool) -> dict[str, bool]:
    """Return who knows of a fault. With `is_told`, wait until somebody does, for TOLD_S at most."""
    if is_told:
        until(lambda: any(stage.told().values()), TOLD_S)
    return stage.told()


def judged(case: FaultCase, served_s: float | None, details: dict[str, Any]) -> ResultRow:
    """Return the row of a case, with all that is not as it must be."""
    told, stall_ms = details["told"], details["stall_ms"]
    of_group = [told[name] for name in ("supervisor, group", "region, hit", "region, neighbour")]
    faults = [*details["wrong"], *(f"left: {what}" for what in details["left"])]
    faults += ["the group is not told"] if case.is_told and not any(of_group) else []
    faults += ["the group is told of a fault"] if any(of_group) and not case.is_told else []
    faults += ["another group is told"] if told["supervisor, other"] or told["region, elsewhere"] else []
    faults += [f"fixed 30 waits for {stall_ms:.0f} ms"] if stall_ms > case.most_stall_ms else []
    faults += ["no new member is served"] if served_s is None else []
    faults += ["a new member waits for too long"] if served_s is not None and served_s > SERVED_S else []
    return ResultRow(
        id=row_id(case.name),
        value=served_s,
        unit="s",
        goal=f"<= {SERVED_S:g}",
        fault="; ".join(faults)[:1000],
        details=details | {"most_stall_ms": case.most_stall_ms},
    )


def line(name: str, row: ResultRow) -> str:
    """Return a case's line of the table."""
    served = "never" if row.value is None else f"{row.value:.2f}"
    stalls = f"{row.details['stall_before_ms']:.1f} | {row.details['stall_ms']:.1f}"
    told = ", ".join(who for who, is_told in row.details["told"].items() if is_told) or "nobody"
    return f"| {name} | {served} | {stalls} | {told} | {row.fault or 'none'} |"


def main() -> int:
    """Run the cases, print a line of each, and return 1 when anything was not as it must be."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", metavar="case", help="text in the name of a case; all by default")
    parser.add_argument("--json", type=Path, help=recorder.JSON_HELP)
    asked = parser.parse_args()
    record = ResultRecorder(asked.json, "space.faults", SOURCES)
    print(record, flush=True)
    print("| case | new member after s | fixed 30 waits, before ms | during ms | told | faults |\n|" + "---|" * 6)
    for case in CASES:
        if asked.cases and not any(text in case.name for text in asked.cases):
            continue
        try:
            row = measure(case)
            print(line(case.name, row), flush=True)
        except (RuntimeError, OSError, ValueError) as error:
            row = ResultRow(id=row_id(case.name), value=None, unit="s", fault=f"FAILED: {error}"[:1000])
            print(f"| {case.name} | | | | | {row.fault} |", flush=True)
        record.add(row)
    return 1 if record.result.faults else 0


if __name__ == "__main__":
    sys.exit(main())
