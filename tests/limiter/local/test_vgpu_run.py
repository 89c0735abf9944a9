"""Programs under `vgpu run` on one simulated card, and what `vgpu top` and `vgpu set` do with them.

Shares are asserted loosely: the machine may be busy.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import limiter
from simgpu.world import World

pytestmark = pytest.mark.slow

ROOT = Path(limiter.__file__).parents[1]
SEEN_S = 2.0  # after which changed limits are in force


class Vgpu:
    """The command `vgpu`, with its own state directory."""

    def __init__(self, world: World, home: str) -> None:
        self._world = world
        self._env = world.environment(PYTHONPATH=str(ROOT), VGPU_STATE_DIR=home)

    def run(self, *options: str) -> None:
        probe = str(self._world.bin / "gpuprobe")
        command = [sys.executable, "-m", "vgpu.cli", "run", *options, "--", probe, "spin", "500"]
        self._world.processes.append(subprocess.Popen(command, env=self._env, text=True))

    def start(self, *options: str) -> tuple[subprocess.Popen[str], int]:
        """Starts a command that does nothing; returns it and its pid."""
        command = [sys.executable, "-m", "vgpu.cli", "run", *options, "--", "sh", "-c", "echo $$; exec sleep 60"]
        process = subprocess.Popen(command, env=self._env, text=True, stdout=subprocess.PIPE)
        assert process.stdout is not None
        return process, int(process.stdout.readline())

    def __call__(self, *arguments: str) -> str:
        return self.ended(0, *arguments).stdout

    def ended(self, code: int, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command that ends with an exit code."""
        command = [sys.executable, "-m", "vgpu.cli", *arguments]
        done = subprocess.run(command, env=self._env, capture_output=True, text=True, check=False, timeout=30)
        assert done.returncode == code, done.stderr
        return done

    def top(self) -> dict[int, Any]:
        """The rows of `vgpu top`, by their requested cores."""
        rows = json.loads(self("top", "--once", "-o", "json", "--refresh", "0.1"))
        return {row["cores"]: row for row in rows}

    def until(self, condition: Callable[[dict[int, Any]], bool], within_s: float = 20) -> dict[int, Any]:
        deadline = time.monotonic() + within_s
        while not condition(rows := self.top()):
            assert time.monotonic() < deadline, rows
        return rows


@pytest.fixture
def vgpu(world: World) -> Iterator[Vgpu]:
    with tempfile.TemporaryDirectory(prefix="vgpu-", ignore_cleanup_errors=True) as home:
        yield Vgpu(world, home)
        for process in world.processes:
            process.terminate()
            process.wait()


def share(rows: dict[int, Any], cores: int) -> float:
    return rows[cores]["share_1s"] or 0.0 if cores in rows else 0.0


def test_two_programs_alternate_and_top_shows_both(vgpu: Vgpu) -> None:
    vgpu.run("--gpu-cores", "20", "--compute-policy", "burst", "--priority", "4")
    vgpu.run("--gpu-mem", "1Gi", "--gpu-cores", "60")
    rows = vgpu.until(lambda rows: share(rows, 20) > 0.1 and share(rows, 60) > 0.2)
    assert (rows[20]["policy"], rows[20]["priority"], rows[20]["limit_bytes"]) == ("burst", 4, None)
    assert (rows[60]["policy"], rows[60]["name"], rows[60]["limit_bytes"]) == ("fixed", "gpuprobe spin 500", 1 << 30)
    assert rows[60]["delayed_launches"] > 0
    assert share(rows, 60) < 0.75


def test_changed_limits_hold_within_two_seconds(vgpu: Vgpu) -> None:
    vgpu.run("--gpu-cores", "60")
    rows = vgpu.until(lambda rows: share(rows, 60) > 0.3)
    vgpu("set", rows[60]["id"][:4], "--gpu-cores", "10")
    time.sleep(SEEN_S + 1)
    assert 0 < share(vgpu.top(), 10) < 0.15


def test_memory_beyond_the_card_has_a_warning_at_the_start_and_is_refused_later(vgpu: Vgpu) -> None:
    started = vgpu.ended(0, "run", "--gpu-mem", "999Gi", "--", "true")
    assert "vgpu run: warning: 999 GiB is more than card 0 (" in started.stderr
    vgpu.run("--gpu-mem", "1Gi", "--gpu-cores", "40")
    rows = vgpu.until(lambda rows: 40 in rows)
    refused = vgpu.ended(2, "set", rows[40]["id"], "--gpu-mem", "999Gi")
    assert "vgpu set: --gpu-mem: 999 GiB is more than card 0 (" in refused.stderr
    assert vgpu.top()[40]["limit_bytes"] == 1 << 30


def test_a_program_that_has_ended_leaves_top(vgpu: Vgpu) -> None:
    process, pid = vgpu.start("--gpu-cores", "30")
    vgpu.until(lambda rows: 30 in rows)
    os.kill(pid, signal.SIGKILL)
    process.communicate()
    vgpu.until(lambda rows: not rows, SEEN_S)


def test_a_command_keeps_its_limits_where_vgpu_run_was_killed(vgpu: Vgpu) -> None:
    process, pid = vgpu.start("--gpu-cores", "30")
    process.kill()
    process.wait()
    vgpu("run", "--gpu-mem", "1Gi", "--", "true")  # removes allocations of dead processes
    assert set(vgpu.top()) == {30}
    os.kill(pid, signal.SIGKILL)
    process.communicate()  # the pipe is closed at its end
    vgpu("run", "--gpu-mem", "1Gi", "--", "true")
    assert vgpu.top() == {}
