"""The cost of the arbiter itself: time to the next client's wakeup, turns per second, processor time. Needs no GPU.

    python -m benchmarks.arbiter [--seconds S] [--json FILE]

Clients hold a turn for the given time and end it with no work in flight. The time from there to the wakeup of the next
client is one message, two wakeups and the arbiter's decision.
"""

import argparse
import platform
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import limiter
from benchmarks.compute import waiting_jobs
from benchmarks.record import recorder, result
from benchmarks.record.recorder import ResultRecorder
from limiter import build
from limiter.build import toolchain
from vgpu.domain.asks.policy import ComputePolicy
from vgpu.domain.formats import limits
from vgpu.domain.formats.limits import ANY_GPU, CardLimit, Limits

Document = dict[str, Any]
PROGRAMS = Path(__file__).parent / "programs"
SOURCES = ("turn_client.c", "arbiter_clients.c")
# Containers of one client each, and us that each holds its turn: less than 1 ms, after which the arbiter ends an idle
# turn, and long enough for the arbiter's limit on messages.
SHAPES = ((2, 800), (8, 800), (300, 0))
IDLE = (0, 2, 300)
JOBS = (0, 1, 8, 64)
FOUND_S = 1.0  # the arbiter reads limits and regions twice a second
UNITS = {"median_us": "us", "p99_us": "us", "turns_per_s": "1/s", "processor_us_per_turn": "us"}


def main() -> None:
    """Measure, print and record three tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=3.0, help="that each row is measured")
    parser.add_argument("--json", type=Path, help=recorder.JSON_HELP)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        program = compiled(Path(scratch))
        turns = [take_turns(program, *shape, asked.seconds) for shape in SHAPES]
        idle = [stand_idle(clients, asked.seconds) for clients in IDLE]
    jobs = [wait_for_debts(count, asked.seconds) for count in JOBS]
    record = ResultRecorder(asked.json, "arbiter", recorder.ARBITER_SOURCES)
    record.add(*turn_rows(turns), *idle_rows(idle), *job_rows(jobs))
    print(f"{table(turns, idle, jobs)}\n\n{record}")


def compiled(folder: Path) -> Path:
    """Build the program of the clients."""
    program = folder / "arbiter_clients"
    sources = [str(PROGRAMS / name) for name in SOURCES]
    command = [*toolchain.compiler(platform.machine()), *build.flags(), "-O2", *sources, "-lpthread"]
    subprocess.run([*command, "-o", str(program)], check=True)
    return program


@contextmanager
def arbiter(containers: int) -> Iterator[tuple[int, list[str]]]:
    """Run an arbiter for `containers` containers; yield its PID and the containers' sockets."""
    with (
        tempfile.TemporaryDirectory(prefix="va-") as scratch,
        serving(Path(scratch), [_add(Path(scratch), number) for number in range(containers)]) as served,
    ):
        yield served


@contextmanager
def serving(allocations: Path, sockets: list[Path]) -> Iterator[tuple[int, list[str]]]:
    """Run an arbiter for the containers below a directory; yield its PID and their sockets."""
    with subprocess.Popen([str(limiter.arbiter_path()), str(allocations)]) as process:
        try:
            while not all(path.exists() for path in sockets):
                time.sleep(0.01)
            yield process.pid, [str(path) for path in sockets]
        finally:
            process.terminate()


def _add(allocations: Path, number: int) -> Path:
    folder = allocations / str(number)
    (folder / "arbiter").mkdir(parents=True)
    wanted = Limits((CardLimit(ANY_GPU, None, 0),), ComputePolicy.BURST)
    (folder / "limits").write_bytes(limits.encode(wanted))
    return folder / "arbiter" / "socket"


def processor_ns(pid: int) -> int:
    """Return the processor time that a process has used, in ns (Linux: Documentation/scheduler/sched-stats.rst)."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])


def processor_percent(pid: int, seconds: float) -> float:
    """Return the percentage of a processor that a process uses in the next seconds."""
    before = processor_ns(pid)
    time.sleep(seconds)
    return (processor_ns(pid) - before) / seconds / 1e7


def take_turns(program: Path, clients: int, hold_us: int, seconds: float) -> Document:
    """Measure `clients` clients that take turns."""
    with arbiter(clients) as (pid, sockets):
        before = processor_ns(pid)
        command = [str(program), str(hold_us), str(seconds), *sockets]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        used = processor_ns(pid) - before
    turns, *waits = map(int, output.split())
    ordered = sorted(waits)
    return {
        "clients": clients,
        "hold_us": hold_us,
        "turns_per_s": turns / seconds,
        "median_us": statistics.median(ordered) / 1000,
        "p99_us": ordered[len(ordered) * 99 // 100] / 1000,
        "processor_us_per_turn": used / 1000 / turns,
    }


def stand_idle(clients: int, seconds: float) -> Document:
    """Measure the arbiter while the containers are idle; each had a client with a turn before."""
    with arbiter(clients) as (pid, sockets), tempfile.TemporaryDirectory() as scratch:
        if clients:
            subprocess.run([str(compiled(Path(scratch))), "800", "0.1", *sockets], check=True, capture_output=True)
        return {"containers": clients, "processor_percent": processor_percent(pid, seconds)}


def wait_for_debts(jobs: int, seconds: float) -> Document:
    """Measure the arbiter while jobs of two containers wait for debts; with 0, two containers of no job do."""
    containers = max(1, jobs) * waiting_jobs.CONTAINERS
    with tempfile.TemporaryDirectory(prefix="va-") as scratch, ExitStack() as stack:
        folder = Path(scratch)
        sockets = [waiting_jobs.add(folder, number, is_of_job=jobs > 0) for number in range(containers)]
        pid, _ = stack.enter_context(serving(folder, sockets))
        waiting_jobs.ask(sockets, stack)
        time.sleep(FOUND_S)
        return {"jobs": jobs, "processor_percent": processor_percent(pid, seconds)}


def turn_rows(turns: Sequence[Document]) -> Iterator[result.ResultRow]:
    """Yield a row for each figure of each number of clients."""
    for turn in turns:
        for figure, unit in UNITS.items():
            row_id = result.slug("arbiter", f"{turn['clients']} clients", figure)
            yield result.ResultRow(id=row_id, value=turn[figure], unit=unit, details={"hold_us": turn["hold_us"]})


def idle_rows(idle: Sequence[Document]) -> Iterator[result.ResultRow]:
    """Yield a row for each number of idle containers."""
    for document in idle:
        row_id = result.slug("arbiter", f"{document['containers']} idle")
        yield result.ResultRow(id=row_id, value=document["processor_percent"], unit="%")


def job_rows(jobs: Sequence[Document]) -> Iterator[result.ResultRow]:
    """Yield a row for each number of jobs that wait."""
    for document in jobs:
        row_id = result.slug("arbiter", f"{document['jobs']} jobs wait")
        yield result.ResultRow(id=row_id, value=document["processor_percent"], unit="%")


def table(turns: Sequence[Document], idle: Sequence[Document], jobs: Sequence[Document]) -> str:
    """Return the figures as three tables in Markdown."""
    lines = [
        "| clients | held us | end to next wakeup us: median | p99 | turns/s | arbiter's processor us a turn |",
        "|---|---|---|---|---|---|",
    ]
    for row in turns:
        times = f"{row['median_us']:.0f} | {row['p99_us']:.0f} | {row['turns_per_s']:.0f}"
        lines.append(f"| {row['clients']} | {row['hold_us']} | {times} | {row['processor_us_per_turn']:.1f} |")
    lines += ["", "| idle containers | arbiter's processor % |", "|---|---|"]
    lines += [f"| {row['containers']} | {row['processor_percent']:.3f} |" for row in idle]
    lines += ["", "| jobs of two containers that repay a debt | arbiter's processor % |", "|---|---|"]
    lines += [f"| {row['jobs']} | {row['processor_percent']:.3f} |" for row in jobs]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
