"""The arbiter in the plugin's care: kept running, heard, ended, and not needed. The program here is a stand-in."""

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
from tests.vgpu.node.pids import is_running, lives
from vgpu.node import arbiter
from vgpu.node.arbiter import Arbiter, Backoff

ROOT = Path(limiter.__file__).parents[1]
Start = Callable[[str], Path]


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    """Runs a script as the arbiter; its process's number stands in the file that comes back."""
    tasks = []

    def start(script: str) -> Path:
        program, pids = tmp_path / "program", tmp_path / "pids"
        program.write_text(f"#!/bin/sh\necho $$ >> {pids}\n{script}\n")
        program.chmod(0o755)
        made = Arbiter(program, tmp_path / "config", tmp_path / "allocations", time.monotonic)
        tasks.append(asyncio.create_task(made.run()))
        return pids

    yield start
    for task in tasks:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def test_each_failed_start_is_waited_for_longer_and_a_steady_life_begins_anew() -> None:
    backoff = Backoff()
    assert [backoff.after(0.01) for _ in range(9)] == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10, 10]
    assert [backoff.after(60), backoff.after(59), backoff.after(1)] == [0.1, 0.2, 0.4]


async def test_it_is_told_where_to_look_and_its_words_are_in_our_log(
    start: Start, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    await lives(start('echo "got $@" >&2; exec sleep 60'))
    async with asyncio.timeout(5):
        while "got" not in caplog.text:
            await asyncio.sleep(0.005)
    assert f"got --parent {os.getpid()} --config {tmp_path}/config {tmp_path}/allocations" in caplog.text


async def test_it_is_started_again_when_it_ends(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    pids = start("exec sleep 60")
    (first,) = await lives(pids)
    os.kill(first, signal.SIGKILL)
    killed = time.monotonic()
    _, second = await lives(pids, 2)
    assert time.monotonic() - killed < 2
    assert not is_running(first)
    assert is_running(second)
    assert "arbiter: exited with code -9" in caplog.text


@pytest.mark.parametrize("script", ["exec sleep 60", "trap '' TERM; while :; do sleep 0.1; done"])
async def test_it_ends_with_us(start: Start, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    monkeypatch.setattr(arbiter, "_END_S", 0.2)
    (pid,) = await lives(start(script))
    (task,) = [each for each in asyncio.all_tasks() if "Arbiter.run" in repr(each)]
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert not is_running(pid)


async def test_words_of_any_length_and_kind_are_told() -> None:
    stream = asyncio.StreamReader()
    stream.feed_data(b"one\n\xff\xfe\n" + b"x" * 10000 + b"\nlast")
    stream.feed_eof()
    told = [line async for line in arbiter.lines(stream)]
    assert told[:2] == ["one", "\ufffd\ufffd"]
    assert "".join(told[2:-1]) == "x" * 10000
    assert told[-1] == "last"


async def test_killed_we_take_it_with_us(tmp_path: Path) -> None:
    """The real one, which asks the kernel for that."""
    program = (
        "import asyncio, sys, time; from pathlib import Path; from vgpu.node.arbiter import Arbiter\n"
        "folder = Path(sys.argv[1])\n"
        "asyncio.run(Arbiter(folder / 'program', folder / 'config', folder, time.monotonic).run())"
    )
    (tmp_path / "config").write_text("* 90 70\n")
    (tmp_path / "program").write_text(f'#!/bin/sh\necho $$ >> {tmp_path}/pids\nexec {limiter.arbiter_path()} "$@"\n')
    (tmp_path / "program").chmod(0o755)
    us = await asyncio.create_subprocess_exec(sys.executable, "-c", program, tmp_path, env={"PYTHONPATH": str(ROOT)})
    (pid,) = await lives(tmp_path / "pids")
    await asyncio.sleep(0.3)
    assert is_running(pid)
    us.kill()
    await us.wait()
    async with asyncio.timeout(5):
        while is_running(pid):
            await asyncio.sleep(0.01)
