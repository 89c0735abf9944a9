"""kill -9 of the extender and of the drain, again and again: no recorded event is lost, and none is doubled."""

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from extender.history import folder
from extender.history.recording.events import Start
from extender.history.reporting.prices import Prices
from extender.history.reporting.sql_reports import SqlReports
from extender.history.storage import database

EVENTS = 200
WRITER = """
import sys
from pathlib import Path
from extender.history.recording.events import PodName, Start
from extender.history.recording.recorder import SpillRecorder
from extender.history.recording.spill import Spill
spill = Spill(Path(sys.argv[1]), max_bytes=1 << 24, segment_bytes=4096)
recorder = SpillRecorder(spill, "r", lambda: 0)
recorder.start()
for number in range(int(sys.argv[2]), int(sys.argv[3])):
    line = spill.next_line
    recorder.record(Start(PodName(f"uid-{number}", "team", "p"), "n1", "main", number))
    while spill.next_line == line:
        pass
    print(number, flush=True)
"""


PARENT = """
import subprocess, sys, time
drain = subprocess.Popen([sys.executable, "-m", "extender.history"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
print(drain.pid, flush=True)
time.sleep(600)
"""


def write_until_killed(home: Path, first: int, seconds: float) -> int:
    """Record events from number `first` on, kill the process after some seconds; return how many were recorded."""
    command = [sys.executable, "-c", WRITER, str(folder.spill(home)), str(first), str(EVENTS)]
    recorded = first
    deadline = 0.0
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            recorded = int(line) + 1
            deadline = deadline or time.monotonic() + seconds
            if time.monotonic() > deadline:
                process.kill()
    return recorded


def start_drain(url: str, home: Path) -> "subprocess.Popen[bytes]":
    environment = os.environ | {"VGPU_HISTORY_DIR": str(home), "VGPU_HISTORY_URL": url}
    return subprocess.Popen([sys.executable, "-m", "extender.history"], stdin=subprocess.PIPE, env=environment)


def stored(url: str) -> list[int]:
    engine = database.engine(url)
    found, cursor = [], ""
    while True:
        page = SqlReports(engine, Prices(), lambda: 0).history(cursor=cursor, limit=1000)
        found += [entry.event.at_ms for entry in page.entries if isinstance(entry.event, Start)]
        cursor = page.cursor
        if not cursor:
            engine.dispose()
            return found[::-1]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_kills_at_any_moment_lose_nothing_and_double_nothing(url: str, tmp_path: Path) -> None:
    rng = random.Random(7)
    recorded = 0
    while recorded < EVENTS:
        with start_drain(url, tmp_path) as drain:
            end = time.monotonic() + rng.uniform(0.3, 2.5)
            recorded = write_until_killed(tmp_path, recorded, rng.uniform(0, 0.3))
            time.sleep(max(0.0, end - time.monotonic()))
            drain.kill()
    engine = database.engine(url)
    database.migrate(engine)
    with start_drain(url, tmp_path) as last:
        deadline = time.monotonic() + 60
        while len(stored(url)) < EVENTS and time.monotonic() < deadline:
            time.sleep(0.2)
        assert last.stdin is not None
        last.stdin.close()
        assert last.wait(30) == 0
    assert stored(url) == list(range(EVENTS))
    engine.dispose()


@pytest.mark.slow
def test_the_drain_ends_when_the_extender_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PARENT]
    environment = os.environ | {"VGPU_HISTORY_DIR": str(tmp_path)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        drain = int(parent.stdout.readline())
        while not folder.sqlite_file(tmp_path).exists():
            time.sleep(0.05)
        parent.kill()
    deadline = time.monotonic() + 20
    while Path(f"/proc/{drain}/exe").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(f"/proc/{drain}/exe").exists()
