"""Calls that hang are left alone; their keys are asked again once they have returned."""

import threading

from vgpu.adapters.bounded_calls import BoundedCalls


def fail() -> int:
    raise ValueError("no")


def test_answers_and_exceptions_are_returned_by_key() -> None:
    answers = BoundedCalls(5).ask({"a": lambda: 1, "b": fail})
    assert answers["a"] == 1
    assert isinstance(answers["b"], ValueError)


def test_a_call_that_hangs_keeps_no_other_from_answering_and_is_not_repeated() -> None:
    calls, released, begun = BoundedCalls(0.05), threading.Event(), []

    def hang() -> int:
        begun.append(1)
        released.wait(10)
        return 2

    for _ in range(3):
        answers = calls.ask({"hangs": hang, "works": lambda: 1})
        assert isinstance(answers["hangs"], TimeoutError)
        assert answers["works"] == 1
    assert len(begun) == 1
    assert calls.is_any_running
    released.set()
    while calls.is_any_running:
        threading.Event().wait(0.001)
    assert calls.ask({"hangs": lambda: 3}) == {"hangs": 3}
