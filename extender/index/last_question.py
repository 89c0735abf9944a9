"""The question asked last. It is answered again when rows have changed, so that the next call finds the answer.

A crowd of equal pods asks the same question again and again, and a Binding changes a row between two calls.
"""

from typing import Final, Generic, TypeVar

Q = TypeVar("Q")

TIMES: Final = 3  # a pod changes its node's row when its cards are reserved, and when the watch shows it bound


class LastQuestion(Generic[Q]):
    """Remembers a question for as many changes of rows as usually come before the next one."""

    def __init__(self) -> None:
        self._question: Q | None = None
        self._left = 0

    def asked(self, question: Q) -> None:
        """Take a question."""
        self._question, self._left = question, TIMES

    def again(self) -> Q | None:
        """Return the question, `TIMES` times after it was asked; then None."""
        if not self._left:
            return None
        self._left -= 1
        return self._question
