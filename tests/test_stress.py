"""`make stress`: the rounds that pass are counted, the tests that fail are named, and nothing is left running."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import failed_tests, stress

ROOT = Path(__file__).parents[1]
FAILS_EVERY_SECOND_TIME = """
from pathlib import Path

import pytest

COUNT = Path(__file__).with_name("count")

def test_every_second_time():
    count = len(COUNT.read_text()) if COUNT.exists() else 0
    COUNT.write_text("x" * (count + 1))
    assert count % 2 == 0

@pytest.mark.slow
def test_slow():
    Path(__file__).with_name("slow").touch()

@pytest.mark.e2e
def test_of_a_cluster():
    raise AssertionError
"""


def busy_loops() -> list[str]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            is_child = f"\nPPid:\t{os.getpid()}\n" in (folder / "status").read_text()
            if is_child and b"while os.getppid() ==" in (folder / "cmdline").read_bytes():
                found.append(folder.name)
        except OSError:
            continue
    return found


def until(check: Callable[[], bool]) -> None:
    """Wait for what the kernel shows of a process: its command line and its end are there a moment later."""
    deadline = time.monotonic() + 30
    while not check():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.heavy
def test_rounds_and_failures_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(stress, "OUTPUT", tmp_path / "logs")
    file = tmp_path / "test_sometimes.py"
    file.write_text(FAILS_EVERY_SECOND_TIME)
    outcome = stress.stressed(str(file), 2)
    ((test, count),) = outcome.failures.items()
    assert (outcome.rounds, outcome.passed, count) == (2, 1, 1)
    assert test.endswith("test_sometimes.py::test_every_second_time")
    assert outcome.report(3).startswith("1 of 2 rounds passed (1 were not begun in time)\n  failed in 1: ")
    assert [log.name for log in (tmp_path / "logs").iterdir()] == ["test_sometimes-2.log"]
    assert (tmp_path / "slow").exists()
    assert "round 1: passed" in capfd.readouterr().out


def test_a_round_that_does_not_end_is_killed(tmp_path: Path) -> None:
    file = tmp_path / "test_for_ever.py"
    file.write_text("import time\n\ndef test_for_ever():\n    time.sleep(1000)\n")
    assert stress.failed_tests(str(file), tmp_path / "log", within_s=0.1) == ["(the round did not end in time)"]


@pytest.mark.heavy
def test_a_file_that_does_not_exist_is_no_success(tmp_path: Path) -> None:
    assert stress.failed_tests(str(tmp_path / "none.py"), tmp_path / "log")


def test_a_busy_loop_ends_with_its_block() -> None:
    with stress.busy_loop():
        until(lambda: bool(busy_loops()))
    assert not busy_loops()


def test_a_busy_loop_ends_with_a_parent_that_is_killed() -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", "from tests import stress\nwith stress.busy_loop(): print(flush=True), input()"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    with parent:
        assert parent.stdout
        parent.stdout.readline()
        (loop,) = Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split()
        parent.kill()
        parent.wait(30)
        assert parent.stdout.read() == b""  # the loop has closed its end
    until(lambda: has_ended(loop))


def has_ended(pid: str) -> bool:
    try:
        return "State:\tZ" in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return True


def test_the_tests_that_failed_last_are_read_from_the_cache(tmp_path: Path) -> None:
    cache = tmp_path / "lastfailed"
    assert failed_tests.ids(cache) == []
    cache.write_text('{"tests/test_b.py::test_ä": true, "tests/test_a.py::test[x y]": true}')
    assert failed_tests.ids(cache) == ["tests/test_a.py::test[x y]", "tests/test_b.py::test_ä"]
