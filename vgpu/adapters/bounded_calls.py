"""Calls into a library that may hang: each runs in a thread of its own and is awaited for a bounded time.

A call that hangs in the kernel cannot be ended. Its thread is left alone, and nothing more is asked under its key until
it has returned. The threads are daemons, so that they do not keep the program from ending.
"""

import threading
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any, TypeVar

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


class BoundedCalls:
    """Calls by key; at most one call of a key runs at a time."""

    def __init__(self, timeout_s: float, next_s: float | None = None) -> None:
        """A call that has not returned after `timeout_s` hangs.

        `next_s`: after an answer, wait this long for the next one, so that a slow call delays those beside it by no
        more. None = wait for all of them until `timeout_s`.
        """
        self._timeout_s = timeout_s
        self._next_s = next_s
        self._running: dict[Hashable, Future[Any]] = {}
        self._late: dict[Hashable, Future[Any]] = {}  # returned after `ask`, or not yet
        self._hanging: dict[Hashable, Future[Any]] = {}

    def ask(self, questions: Mapping[K, Callable[[], T]]) -> dict[K, T | Exception]:
        """Return each answer, or the exception of its call; TimeoutError where the call, or an earlier one, hangs."""
        begun: dict[K, Future[T]] = {}
        for key, question in questions.items():
            if not self.is_running(key):
                begun[key] = self._begin(key, question)
        self._await(begun)
        answers: dict[K, T | Exception] = {key: TimeoutError("an earlier call has not returned") for key in questions}
        for key, future in begun.items():
            outcome = _outcome(future)
            answers[key] = outcome
        return answers

    def ask_patiently(self, questions: Mapping[K, Callable[[], T]]) -> dict[K, T | Exception]:
        """As `ask`, without the calls that are slower than the others, but do not hang.

        Their answers are returned by the next call of this that finds them.
        """
        late: dict[K, T | Exception] = {}
        for key in questions:
            if key in self._late and self._late[key].done():
                late[key] = _outcome(self._late.pop(key))
        answers = self.ask({key: question for key, question in questions.items() if key not in late}) | late
        return {key: answer for key, answer in answers.items() if key in late or not self._is_slow(key, answer)}

    @property
    def is_any_running(self) -> bool:
        """Whether a call has not returned."""
        return any(not call.done() for call in list(self._running.values()))  # other threads add to it

    def is_running(self, key: Hashable) -> bool:
        """Whether the call of a key has not returned."""
        return key in self._running and not self._running[key].done()

    def _await(self, begun: Mapping[K, Future[T]]) -> None:
        if self._next_s is None:
            wait(begun.values(), self._timeout_s)
            return
        pending, allowed_s = set(begun.values()), self._timeout_s
        while pending and (answered := wait(pending, allowed_s, FIRST_COMPLETED)).done:
            pending, allowed_s = answered.not_done, self._next_s
        more_s = self._timeout_s if len(pending) < len(begun) else 0.0
        for key, future in begun.items():
            if future in pending:
                self._leave(key, future, more_s)

    def _leave(self, key: Hashable, future: Future[Any], more_s: float) -> None:
        """Leave a call that has not returned; it hangs if it has not returned after `more_s`."""
        self._late[key] = future
        if more_s == 0:
            self._hanging[key] = future
            return
        timer = threading.Timer(more_s, self._hanging.__setitem__, [key, future])
        timer.daemon = True
        timer.start()

    def _is_slow(self, key: Hashable, answer: object) -> bool:
        return isinstance(answer, TimeoutError) and self._hanging.get(key) is not self._running[key]

    def _begin(self, key: Hashable, question: Callable[[], T]) -> Future[T]:
        self._late.pop(key, None)
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
