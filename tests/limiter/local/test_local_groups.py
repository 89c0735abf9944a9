"""`vgpu run --space`: programs of a group share one MPS server, which begins with the first and ends with the last."""

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
from tests.simgpu import mps_daemon
from vgpu.adapters import mps

pytestmark = pytest.mark.slow

ROOT = Path(limiter.__file__).parents[1]
WITHIN_S = 20.0


class Groups:
    """Programs under `vgpu run`, with a state directory of their own."""

    def __init__(self, world: World, home: Path) -> None:
        self._world, self.home = world, home
        path = f"{world.bin}{os.pathsep}{os.environ['PATH']}"
        self.env = world.environment(PYTHONPATH=str(ROOT), VGPU_STATE_DIR=str(home), PATH=path)

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "vgpu.cli", *arguments]

    def member(self, *options: str) -> subprocess.Popen[str]:
        """Start a program that holds 16 MiB, and return it when it does."""
        program = [str(self._world.bin / "gpuprobe"), "--hold", "0", "alloc", "16"]
        command = self.command("run", *options, "--", *program)
        process = subprocess.Popen(command, env=self.env, text=True, stdout=subprocess.PIPE)
        self._world.processes.append(process)
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["result"] == 0
        return process

    def ended(self, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return subprocess.run(
            self.command(*arguments), env={**self.env, **env}, capture_output=True, text=True, check=False, timeout=30
        )

    def processes(self) -> list[mps.MpsProcess]:
        """The daemons and servers below the state directory."""
        return [found for found in mps.processes() if found.pipe.is_relative_to(self.home)]

    def clients(self, server: mps.MpsProcess) -> int:
        """How many clients a server has."""
        done = subprocess.run(
            [str(self._world.bin / mps.CONTROL)],
            input=f"get_client_list {server.pid}\n",
            env={**self.env, mps.PIPE_DIRECTORY: str(server.pipe)},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        return len(done.stdout.split())

    def top(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = json.loads(self.ended("top", "--once", "-o", "json", "--refresh", "0.1").stdout)
        return rows


@pytest.fixture
def groups(world: World) -> Iterator[Groups]:
    with tempfile.TemporaryDirectory(prefix="vgpu-", ignore_cleanup_errors=True) as home:
        yield Groups(world, Path(home))
        for process in world.processes:
            process.terminate()
            process.wait()
        mps_daemon.end_all(world)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def end(process: subprocess.Popen[str]) -> None:
    process.terminate()
    process.wait(10)


def test_programs_of_a_group_are_clients_of_one_server_that_ends_with_the_last(groups: Groups) -> None:
    first = groups.member("--gpu-mem", "1Gi", "--gpu-cores", "10", "--space", "models", "--sm-percentage", "50")
    second = groups.member("--gpu-mem", "2Gi", "--space", "models")
    (server,) = [found for found in groups.processes() if found.is_server]
    assert groups.clients(server) == 2
    rows = groups.top()
    assert sorted((row["policy"], row["space_group"], row["cores"]) for row in rows) == [
        ("space", "models", 0),
        ("space", "models", 10),
    ]
    assert {row["limit_bytes"] for row in rows} == {1 << 30, 2 << 30}
    end(first)
    time.sleep(1.5)
    assert groups.clients(server) == 1
    end(second)
    until(lambda: groups.processes() == [])


def test_groups_have_servers_of_their_own_and_a_killed_program_leaves_none(groups: Groups) -> None:
    killed = groups.member("--gpu-mem", "1Gi", "--space", "models")
    other = groups.member("--gpu-mem", "1Gi", "--space", "batch")
    assert len({found.pipe for found in groups.processes() if found.is_server}) == 2
    (program,) = Path(f"/proc/{killed.pid}/task/{killed.pid}/children").read_text().split()
    killed.kill()
    os.kill(int(program), signal.SIGKILL)
    killed.wait(10)
    until(lambda: len({found.pipe for found in groups.processes()}) == 1)
    again = groups.member("--gpu-mem", "1Gi", "--space", "models")
    assert len({found.pipe for found in groups.processes() if found.is_server}) == 2
    end(again)
    end(other)
    until(lambda: groups.processes() == [])


def test_a_killed_daemon_is_replaced_for_the_next_program(groups: Groups) -> None:
    first = groups.member("--gpu-mem", "1Gi", "--space", "models")
    (daemon,) = [found for found in groups.processes() if not found.is_server]
    daemon.kill()
    until(lambda: daemon not in groups.processes() and len(groups.processes()) == 1)
    second = groups.member("--gpu-mem", "1Gi", "--space", "models")
    assert len([found for found in groups.processes() if found.is_server]) == 1
    end(first)
    end(second)
    until(lambda: groups.processes() == [])


def test_without_mps_nothing_is_started(groups: Groups) -> None:
    done = groups.ended("run", "--gpu-mem", "1Gi", "--space", "models", "--", "true", PATH=os.environ["PATH"])
    assert done.returncode == 125
    assert "vgpu run: --space: this machine has no nvidia-cuda-mps-control in PATH" in done.stderr
    assert not (groups.home / "allocations").exists()


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--space", "Not_A_Label"), "--space: must be a DNS label"),
        (("--space", "models", "--compute-policy", "fixed", "--gpu-cores", "10"), "--compute-policy: leave it out"),
        (("--space", "models", "--memory-policy", "spill"), "--memory-policy: spill is unified memory"),
        (("--space", "models", "--sm-percentage", "101"), "--sm-percentage: must be 1 to 100"),
        (("--gpu-mem", "1Gi", "--sm-percentage", "50"), "--sm-percentage: needs --space too"),
    ],
)
def test_what_does_not_go_with_a_group_is_refused_by_its_option(
    groups: Groups, options: tuple[str, ...], why: str
) -> None:
    done = groups.ended("run", *options, "--", "true")
    assert done.returncode == 2
    assert f"vgpu run: {why}" in done.stderr
