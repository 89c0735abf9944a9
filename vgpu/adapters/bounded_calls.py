"""Calls into a library that may hang: each runs in a thread of its own and is awaited for a bounded time.

A call that hangs in the kernel cannot be ended. Its thread is left alone, and nothing more is asked under its key until
it has returned. The threads are daemons, so that they do not keep the program from ending.
"""

import threading
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import Future, wait
from typing import Any, TypeVar

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


class BoundedCalls:
    """Calls by key; at most one call of a key runs at a time."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._running: dict[Hashable, Future[Any]] = {}

    def ask(self, questions: Mapping[K, Callable[[], T]]) -> dict[K, T | Exception]:
        """Return each answer, or the exception of its call; TimeoutError where the call, or an earlier one, hangs."""
        begun: dict[K, Future[T]] = {}
        for key, question in questions.items():
            if not self.is_running(key):
                begun[key] = self._begin(key, question)
        wait(begun.values(), self._timeout_s)
        answers: dict[K, T | Exception] = {key: TimeoutError("an earlier call has not returned") for key in questions}
        for key, future in begun.items():
            outcome = _outcome(future)
            answers[key] = outcome
        return answers

    @property
    def is_any_running(self) -> bool:
        """Whether a call has not returned."""
        return any(not call.done() for call in list(self._running.values()))  # other threads add to it

    def is_running(self, key: Hashable) -> bool:
        """Whether the call of a key has not returned."""
        return key in self._running and not self._running[key].done()

    def _begin(self, key: Hashable, question: Callable[[], T]) -> Future[T]:
        future: Future[T] = Future()
        self._running[key] = future
        threading.Thread(target=_answer, args=(question, future), daemon=True).start()
        return future


def _answer(question: Callable[[], T], future: Future[T]) -> None:
    try:
        future.set_result(question())
    except Exception as error:  # noqa: BLE001 - handed to the caller of `ask`
        future.set_exception(error)


def _outcome(future: Future[T]) -> T | Exception:
    if not future.done():
        return TimeoutError("the call has not returned")
    error = future.exception()
    if error is None:
        return future.result()
    if isinstance(error, Exception):
        return error
    raise error
