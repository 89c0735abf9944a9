"""The arbiter as a child process: started again, logged, and ended. The arbiter here is a script."""

import asyncio
import contextlib
import logging
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

import limiter
from tests.vgpu.node.pids import is_running, wait_for_starts
from vgpu.node.cards import arbiter
from vgpu.node.cards.arbiter import Arbiter

ROOT = Path(limiter.__file__).parents[1]
Start = Callable[[str], Path]


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    """Run a script as the arbiter; the returned file has the process IDs of its starts."""
    tasks = []

    def start(script: str) -> Path:
        program, pids = tmp_path / "program", tmp_path / "pids"
        program.write_text(f"#!/bin/sh\necho $$ >> {pids}\n{script}\n")
        program.chmod(0o755)
        made = Arbiter(program, tmp_path / "config", tmp_path / "allocations", time.monotonic, end_s=0.2)
        tasks.append(asyncio.create_task(made.run()))
        return pids

    yield start
    for task in tasks:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def test_the_arbiter_gets_its_folder_and_its_output_is_logged(
    start: Start, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    await wait_for_starts(start('echo "got $@" >&2; exec sleep 60'))
    async with asyncio.timeout(5):
        while "got" not in caplog.text:
            await asyncio.sleep(0.005)
    assert f"got --parent {os.getpid()} --config {tmp_path}/config {tmp_path}/allocations" in caplog.text


async def test_an_ended_arbiter_is_started_again(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    pids = start("exec sleep 60")
    (first,) = await wait_for_starts(pids)
    os.kill(first, signal.SIGKILL)
    killed = time.monotonic()
    _, second = await wait_for_starts(pids, 2)
    assert time.monotonic() - killed < 2
    assert not is_running(first)
    assert is_running(second)
    assert "arbiter: exited with code -9" in caplog.text


@pytest.mark.parametrize("script", ["exec sleep 60", "trap '' TERM; while :; do sleep 0.1; done"])
async def test_the_arbiter_is_ended_on_cancellation(start: Start, script: str) -> None:
    (pid,) = await wait_for_starts(start(script))
    (task,) = [all_task for all_task in asyncio.all_tasks() if "Arbiter.run" in repr(all_task)]
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert not is_running(pid)


async def test_output_lines_of_any_length_and_bytes_are_logged() -> None:
    stream = asyncio.StreamReader()
    stream.feed_data(b"one\n\xff\xfe\n" + b"x" * 10000 + b"\nlast")
    stream.feed_eof()
    lines = [line async for line in arbiter.lines(stream)]
    assert lines[:2] == ["one", "\ufffd\ufffd"]
    assert "".join(lines[2:-1]) == "x" * 10000
    assert lines[-1] == "last"


@pytest.mark.heavy
async def test_the_real_arbiter_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    """The arbiter asks the kernel for a signal at its parent's death."""
    program = (
        "import asyncio, sys, time; from pathlib import Path; from vgpu.node.cards.arbiter import Arbiter\n"
        "folder = Path(sys.argv[1])\n"
        "asyncio.run(Arbiter(folder / 'program', folder / 'config', folder, time.monotonic).run())"
    )
    (tmp_path / "config").write_text("* 90 70\n")
    (tmp_path / "program").write_text(f'#!/bin/sh\necho $$ >> {tmp_path}/pids\nexec {limiter.arbiter_path()} "$@"\n')
    (tmp_path / "program").chmod(0o755)
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, tmp_path, env={"PYTHONPATH": str(ROOT)}
    )
    (pid,) = await wait_for_starts(tmp_path / "pids")
    await asyncio.sleep(0.3)
    assert is_running(pid)
    parent.kill()
    await parent.wait()
    async with asyncio.timeout(5):
        while is_running(pid):
            await asyncio.sleep(0.01)
