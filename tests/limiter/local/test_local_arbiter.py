"""The arbiter of a user: started with the first command, shared by all, ended after the last."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import limiter
from limiter import installation, launch, local_arbiter, local_keeper, local_state

ROOT = Path(limiter.__file__).parents[1]
WANTED = launch.parse("64MiB", 30, None)
HOST = limiter.this_host()
SAYS = "test -S $VGPU_ARBITER_SOCKET && echo there; exec sleep ${1:-0}"

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("shim")]  # builds the arbiter too


def arbiters(home: Path) -> list[int]:
    """Pids of the arbiters of a state directory."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[0].endswith(b"vgpu-arbiter") and str(home / "allocations").encode() in words:
            found.append(int(folder.name))
    return found


def until(condition: Callable[[], object], within_s: float = 10) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture
def home() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="vgpu-"))
    local_state.ensure(folder)
    yield folder
    for pid in arbiters(folder):
        os.kill(pid, signal.SIGKILL)
    shutil.rmtree(folder)


def vgpu_run(home: Path, seconds: float = 0) -> "subprocess.Popen[str]":
    command = ["-m", "vgpu.cli", "run", "--gpu-mem", "1Gi", "--", "/bin/sh", "-c", SAYS, "sh", str(seconds)]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "VGPU_STATE_DIR": str(home)}
    return subprocess.Popen(
        [sys.executable, *command], env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def until_replaced(home: Path, former: int) -> None:
    until(lambda: arbiters(home) not in ([], [former]))


def session_of(pid: int) -> int:
    return os.getsid(pid)


def test_the_arbiter_listens_at_the_command_s_start_and_outlives_it(home: Path) -> None:
    process = vgpu_run(home)
    said, warned = process.communicate(timeout=30)  # the arbiter does not keep the command's pipes open
    assert (said, warned.count("\n")) == ("there\n", 1), warned  # this machine has no GPU
    (arbiter,) = arbiters(home)
    assert (session_of(arbiter) != os.getsid(0), process.returncode) == (True, 0)
    assert list((home / "allocations").iterdir()) == []


def test_one_arbiter_serves_all_commands(home: Path) -> None:
    first = [vgpu_run(home, 2) for _ in range(3)]
    assert [process.communicate(timeout=30)[0] for process in first] == ["there\n"] * 3
    assert len(arbiters(home)) == 1


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM])
def test_vgpu_run_restarts_the_arbiter(home: Path, ending: signal.Signals) -> None:
    """The second restart is done by a thread with blocked signals; the new arbiter must receive signals."""
    process = vgpu_run(home, 60)
    assert process.stdout is not None
    assert process.stdout.readline() == "there\n"
    for _ in range(2):
        (former,) = arbiters(home)
        os.kill(former, ending)
        until_replaced(home, former)
        until(lambda: all(local_state.socket_of(folder).exists() for folder in (home / "allocations").iterdir()))
    process.terminate()
    process.communicate(timeout=30)


def test_the_arbiter_ends_when_no_allocation_is_left(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_arbiter, "_IDLE_EXIT_S", 1)
    allocation = local_state.add(home, WANTED, [], HOST)
    assert local_arbiter.await_socket(allocation.folder, HOST)
    time.sleep(2)
    assert len(arbiters(home)) == 1
    local_keeper.release(allocation)
    until(lambda: not arbiters(home))


def test_the_arbiter_s_log_is_kept_up_to_a_maximum_size(home: Path) -> None:
    (home / "arbiter.log").write_bytes(b"x" * (2 << 20))
    assert local_arbiter.ensure_running(home)
    until(lambda: arbiters(home))
    assert (home / "arbiter.log").stat().st_size < 1 << 20


def test_limits_hold_without_an_arbiter(
    home: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(installation, "ARBITER", "none")
    with limiter.environment("1GiB", 30, None, {"VGPU_STATE_DIR": str(home)}) as env:
        assert Path(env["VGPU_LIMITS_FILE"]).exists()
    assert "no arbiter" in caplog.text


def test_restarts_of_an_arbiter_that_exits_at_once_are_bounded(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "ARBITER", "__init__.py")
    allocation = local_state.add(home, WANTED, [], HOST)
    begun = time.monotonic()
    assert not local_arbiter.await_socket(allocation.folder, HOST)
    assert time.monotonic() - begun < 5
    local_keeper.release(allocation)
