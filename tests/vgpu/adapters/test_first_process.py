"""A process that keeps a program running, and waits for the processes that the program leaves behind."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import limiter
from tests.vgpu.node.pids import read_pids

FIRST = """
import os, sys, time
from vgpu.adapters import first_process
from vgpu.adapters.child_process import Restarts
from vgpu.pacing.back_off import BackOff
restarts = Restarts(BackOff(first_s=0.1, longest_s=float(sys.argv[1])), steady_s=60)
report = lambda end, pause_s: print(end, round(pause_s, 1), flush=True)
first_process.keep_running(sys.argv[2:], os.environ, restarts, report, time.monotonic)
print("over", flush=True)
"""
ROOT = Path(limiter.__file__).parents[1]
Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Run a shell script under the first process; each start appends its process ID to the file `pids`."""
    started: list[subprocess.Popen[str]] = []

    def start(script: str, longest_s: float = 0.1) -> subprocess.Popen[str]:
        command = ("/bin/sh", "-c", f"echo $$ >> {tmp_path}/pids\nexec > /dev/null\n{script}")
        process = subprocess.Popen(
            [sys.executable, "-c", FIRST, str(longest_s), *command], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.terminate()
        process.communicate(timeout=10)


def await_starts(tmp_path: Path, count: int) -> list[int]:
    deadline = time.monotonic() + 10
    while len(found := read_pids(tmp_path / "pids")) < count:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return found


def children(process: subprocess.Popen[str]) -> list[int]:
    """The children of a process, those included that have ended and are not waited for."""
    return [int(pid) for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_a_program_that_ends_is_started_again(start: Start, tmp_path: Path) -> None:
    process = start("exit 3")
    assert line(process) == "exited with code 3 0.1"
    await_starts(tmp_path, 3)


def test_a_killed_program_is_started_again_and_its_children_stay(start: Start, tmp_path: Path) -> None:
    process = start("sleep 60 & exec sleep 60")
    (first,) = await_starts(tmp_path, 1)
    while len(Path(f"/proc/{first}/task/{first}/children").read_text().split()) < 1:
        time.sleep(0.01)
    (stays,) = map(int, Path(f"/proc/{first}/task/{first}/children").read_text().split())
    subprocess.run(["kill", "-9", str(first)], check=True)
    assert line(process) == "exited with code -9 0.1"
    await_starts(tmp_path, 2)
    assert stays in children(process)
    for pid in (stays, *await_starts(tmp_path, 2)[1:]):
        subprocess.run(["kill", "-9", str(pid)], check=False)


def test_no_process_that_is_left_behind_stays_as_a_zombie(start: Start, tmp_path: Path) -> None:
    process = start("for n in 1 2 3 4 5; do (sleep 0.05 &) ; done; sleep 0.2; exec sleep 60")
    (program,) = await_starts(tmp_path, 1)
    deadline = time.monotonic() + 5
    time.sleep(0.3)
    while children(process) != [program]:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    subprocess.run(["kill", "-9", str(program)], check=True)


def test_it_ends_after_its_program_when_it_is_told_to(start: Start, tmp_path: Path) -> None:
    process = start("trap 'sleep 0.2; exit 0' TERM; while :; do sleep 0.05; done")
    await_starts(tmp_path, 1)
    time.sleep(0.2)
    begun = time.monotonic()
    process.send_signal(signal.SIGTERM)
    assert process.wait(5) == 0
    assert time.monotonic() - begun >= 0.2
    assert line(process) == "over"


@pytest.mark.heavy
def test_it_ends_between_two_starts_too(start: Start) -> None:
    process = start("exit 1", 60)
    for _ in range(5):
        line(process)
    process.send_signal(signal.SIGTERM)
    assert process.wait(2) == 0


def test_a_program_that_does_not_exist_is_reported(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FIRST, "0.1", str(tmp_path / "none")]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert "cannot be started: [Errno 2] No such file or directory" in line(process)
        process.terminate()
