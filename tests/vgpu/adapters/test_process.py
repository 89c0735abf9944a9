"""How a part's process ends."""

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
