"""Child processes: ended within a time, and started again with back-off."""

import asyncio
import time
from asyncio.subprocess import DEVNULL, PIPE, Process

import pytest

from vgpu.adapters import child_process
from vgpu.adapters.child_process import ChildEnd, Restarts
from vgpu.pacing.back_off import BackOff

RESTARTS = Restarts(BackOff(0.1, 10.0), steady_s=60.0)
DEAF = "trap '' TERM; echo ready; while :; do sleep 0.1; done"


def close_input(process: Process) -> None:
    assert process.stdin is not None
    process.stdin.close()


async def test_a_process_that_ends_at_the_deadline_has_its_own_status() -> None:
    """The loop was busy, and is told of the deadline and of the end at the same time."""
    process = await asyncio.create_subprocess_exec("sh", "-c", "exit 3", stdin=DEVNULL)
    ending = asyncio.create_task(child_process.ended(process, 0.05))
    await asyncio.sleep(0)
    time.sleep(0.3)  # noqa: ASYNC251 - the loop is busy
    assert await ending == 3


class Runs:
    """A process whose runs, exit statuses and start errors are written down; the clock stands still between runs."""

    def __init__(self, *runs: tuple[float, int | OSError]) -> None:
        self._runs = list(runs)
        self._now = 0.0
        self.reports: list[tuple[ChildEnd, float]] = []
        self.slept: list[float] = []

    async def once(self) -> int:
        seconds, outcome = self._runs.pop(0)
        self._now += seconds
        if isinstance(outcome, OSError):
            raise outcome
        return outcome

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        if not self._runs:
            raise asyncio.CancelledError

    async def run(self) -> None:
        with pytest.raises(asyncio.CancelledError):
            await child_process.keep_running(
                self.once,
                RESTARTS,
                lambda end, pause_s: self.reports.append((end, pause_s)),
                clock=lambda: self._now,
                sleep=self.sleep,
            )


async def test_the_pause_doubles_after_each_short_run_and_a_long_run_resets_it() -> None:
    runs = Runs(*[(0.01, 1)] * 9, (60.0, 1), (59.0, 1), (1.0, 1))
    await runs.run()
    assert runs.slept == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10, 10, 0.1, 0.2, 0.4]


async def test_each_end_is_reported_with_the_pause_that_follows() -> None:
    runs = Runs((0.0, OSError("no such file")), (1.0, -9))
    await runs.run()
    assert runs.reports == [(ChildEnd(None, "no such file"), 0.1), (ChildEnd(-9), 0.2)]
    assert [str(end) for end, _ in runs.reports] == ["cannot be started: no such file", "exited with code -9"]


async def test_a_process_that_ends_by_itself_is_told_nothing() -> None:
    told: list[Process] = []
    async with child_process.running("sh", "-c", "exit 3", tell_to_end=told.append, end_s=1.0) as process:
        assert await process.wait() == 3
    assert told == []


async def test_a_process_is_told_to_end_and_has_time_for_it() -> None:
    script = "read line; sleep 0.2; exit 7"
    async with child_process.running("sh", "-c", script, tell_to_end=close_input, end_s=10.0, stdin=PIPE) as process:
        pass
    assert process.returncode == 7


async def test_a_process_that_does_not_end_in_time_is_killed() -> None:
    async with child_process.running(
        "sh", "-c", DEAF, tell_to_end=Process.terminate, end_s=0.1, stdin=DEVNULL, stdout=PIPE
    ) as process:
        assert process.stdout is not None
        await process.stdout.readline()
    assert process.returncode == -9


async def test_a_process_is_ended_where_its_supervision_is_cancelled() -> None:
    started: asyncio.Future[Process] = asyncio.get_running_loop().create_future()

    async def supervise() -> None:
        async with child_process.running("sleep", "60", tell_to_end=Process.terminate, end_s=10.0) as process:
            started.set_result(process)
            await process.wait()

    task = asyncio.create_task(supervise())
    process = await started
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert process.returncode == -15


async def test_a_program_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(FileNotFoundError):
        async with child_process.running("/no/such/program", tell_to_end=Process.terminate, end_s=1.0):
            pass
