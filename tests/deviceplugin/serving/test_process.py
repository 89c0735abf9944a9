"""How the first process runs the one that serves: when it is started again, and when not."""

import asyncio
import os
import signal
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from deviceplugin.serving import process


@dataclass
class Relay:
    """Counts the ends of processes; `is_served` says whether the process that runs has registered."""

    is_served: bool = False
    serves: list[bool] = field(default_factory=list)  # of the processes to come
    ends: int = 0

    def ended(self) -> None:
        self.ends += 1
        self.is_served = self.serves.pop(0) if self.serves else False


async def run(relay: Relay, *command: str, return_s: float = 5.0, steady_s: float = 0.0) -> int:
    return await process.keep_running(
        command, os.environ, relay, kept_open=(), clock=time.monotonic, return_s=return_s, steady_s=steady_s
    )


async def test_a_process_that_ends_before_it_has_registered_is_not_started_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It says why itself, in the last line, which the kubelet shows."""
    relay = Relay()
    assert await run(relay, sys.executable, "-IS", "-c", "raise SystemExit(3)") == 3
    assert (relay.ends, caplog.text) == (1, "")


async def test_a_process_that_was_killed_while_it_served_is_started_again(caplog: pytest.LogCaptureFixture) -> None:
    """The second one is killed before it has registered, as by the kernel in a loop: that ends all."""
    relay = Relay(is_served=True)
    killed = (sys.executable, "-IS", "-c", "import os; os.kill(os.getpid(), 9)")
    assert await run(relay, *killed) == 128 + signal.SIGKILL
    assert relay.ends == 2
    assert "ended by SIGKILL; it is started again" in caplog.text
    assert "ended by SIGKILL at its start, or often, and is not started again" in caplog.text


async def test_a_process_that_ends_soon_after_it_has_registered_is_not_started_again() -> None:
    relay = Relay(is_served=True, serves=[True])
    assert await run(relay, sys.executable, "-IS", "-c", "raise SystemExit(1)", steady_s=30) == 1
    assert relay.ends == 1


async def test_a_process_that_ends_often_ends_the_container_so_that_the_restart_is_seen() -> None:
    relay = Relay(is_served=True, serves=[True] * process.MOST_ENDS)
    assert await run(relay, sys.executable, "-IS", "-c", "raise SystemExit(1)") == 1
    assert relay.ends == process.MOST_ENDS + 1


async def test_a_process_that_does_not_register_in_time_is_ended(tmp_path: Path) -> None:
    """The kubelet's calls wait: it does not do without an answer for longer."""
    relay = Relay(is_served=True)
    script = f"""
import os, pathlib, time
here = pathlib.Path({str(tmp_path)!r})
(here / str(os.getpid())).touch()
if len(list(here.iterdir())) > 1:
    time.sleep(60)
"""
    assert await asyncio.wait_for(run(relay, sys.executable, "-IS", "-c", script, return_s=0.5), 20) != 0
    assert sum(1 for _ in os.scandir(tmp_path)) == 2


async def test_the_process_ends_with_the_first_one(tmp_path: Path) -> None:
    script = f"""
import pathlib, signal, sys, time
def end(*_):
    pathlib.Path({str(tmp_path / "ended")!r}).touch()
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
pathlib.Path({str(tmp_path / "begun")!r}).touch()
time.sleep(60)
"""
    running = asyncio.create_task(run(Relay(), sys.executable, "-IS", "-c", script))
    while not (tmp_path / "begun").exists():
        await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (tmp_path / "ended").exists()


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_process_ends_when_the_first_one_is_killed(tmp_path: Path, when: str) -> None:
    """Also where the first one is killed before this one has loaded its modules."""
    child = f"""
import os, pathlib, signal, time
from deviceplugin.serving.process import end_with_parent
folder = pathlib.Path({str(tmp_path)!r})
signal.signal(signal.SIGTERM, lambda *_: ((folder / "ended").touch(), exit(0)))
(folder / "before").touch()
while {when == "before"} and not (folder / "killed").exists():
    time.sleep(0.01)
end_with_parent(os.environ)
(folder / "after").touch()
time.sleep(60)
"""
    parent = f"""
import asyncio, os, sys, time
from deviceplugin.serving import process
from tests.deviceplugin.serving.test_process import Relay
command = [sys.executable, "-c", {child!r}]
asyncio.run(process.keep_running(command, os.environ, Relay(is_served=True), kept_open=(), clock=time.monotonic))
"""
    first = await asyncio.create_subprocess_exec(sys.executable, "-c", parent, cwd=Path(__file__).parents[3])
    async with asyncio.timeout(30):
        await until(tmp_path / when)
        first.kill()
        await first.wait()
        (tmp_path / "killed").touch()
        await until(tmp_path / "ended")


async def until(path: Path) -> None:
    while not path.exists():  # noqa: ASYNC240 - a file of this machine
        await asyncio.sleep(0.01)
