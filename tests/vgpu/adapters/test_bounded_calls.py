"""Calls that hang are left alone; their keys are asked again once they have returned."""

import threading

import pytest

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


def test_a_slow_call_delays_those_beside_it_by_the_next_only_and_its_answer_comes_later() -> None:
    calls, released = BoundedCalls(30, next_s=0.05), threading.Event()

    def slow() -> int:
        released.wait(20)
        return 2

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threading.Timer, "start", lambda _: None)
        assert calls.ask_patiently({"slow": slow, "works": lambda: 1}) == {"works": 1}
        assert calls.ask_patiently({"slow": slow, "works": lambda: 1}) == {"works": 1}
    released.set()
    while calls.is_any_running:
        threading.Event().wait(0.001)
    assert calls.ask_patiently({"slow": lambda: 3, "works": lambda: 1}) == {"slow": 2, "works": 1}
    assert calls.ask_patiently({"slow": lambda: 3, "works": lambda: 1}) == {"slow": 3, "works": 1}


def test_a_call_beside_others_hangs_after_the_whole_time() -> None:
    calls, released = BoundedCalls(0.2, next_s=0.01), threading.Event()
    questions = {"hangs": lambda: released.wait(20), "works": lambda: True}
    assert calls.ask_patiently(questions) == {"works": True}
    for _ in range(1000):
        if "hangs" in (found := calls.ask_patiently(questions)):
            break
        threading.Event().wait(0.005)
    assert isinstance(found["hangs"], TimeoutError)
    assert found["works"] is True
    released.set()


def test_the_only_call_hangs_at_once_after_the_whole_time() -> None:
    calls, released = BoundedCalls(0.05, next_s=0.01), threading.Event()
    assert isinstance(calls.ask_patiently({"hangs": lambda: released.wait(20)})["hangs"], TimeoutError)
    released.set()
