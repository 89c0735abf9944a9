"""How a part's process ends."""

import asyncio
import os
import signal

import pytest

from vgpu.adapters import process
from vgpu.domain.errors import UnusableSetting


async def two_errors() -> None:
    raise ExceptionGroup(
        "tasks", [ExceptionGroup("inner", [UnusableSetting("the scheduler\non b leads")]), OSError("x")]
    )


async def a_fault() -> None:
    raise ExceptionGroup("tasks", [UnusableSetting("a setting"), ZeroDivisionError("a fault")])


def test_expected_errors_of_tasks_end_the_process_with_one_line() -> None:
    with pytest.raises(SystemExit) as ended:
        process.run("extender", "critical", two_errors)
    assert ended.value.code == r"extender: the scheduler\non b leads; x"


def test_a_fault_of_the_program_keeps_its_traceback() -> None:
    with pytest.raises(ExceptionGroup):
        process.run("extender", "critical", a_fault)


@pytest.mark.parametrize(
    ("signals", "is_cleaned_up"),
    [
        ([signal.SIGTERM], True),
        ([signal.SIGINT], True),
        ([signal.SIGTERM, signal.SIGTERM], True),
        ([signal.SIGINT, signal.SIGTERM], True),
        ([signal.SIGTERM, signal.SIGINT], False),
    ],
)
def test_only_a_second_interrupt_cuts_the_cleanup_off(signals: list[signal.Signals], is_cleaned_up: bool) -> None:
    done = []

    async def part() -> None:
        first, *others = signals
        try:
            os.kill(os.getpid(), first)
            await asyncio.sleep(10)
        finally:
            for number in others:
                os.kill(os.getpid(), number)
            await asyncio.sleep(0.05)
            done.append("cleaned up")

    process.run("extender", "critical", part)
    assert bool(done) == is_cleaned_up
