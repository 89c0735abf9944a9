"""A wait ends: with the answer, with the time, or with the death of who should bring it."""

from dataclasses import dataclass

import pytest

from cluster import wait


@dataclass
class Witness:
    name: str = "plugin"
    dead: bool = False

    def tail(self) -> str:
        return "last words"

    def gone(self) -> bool:
        return self.dead


def test_the_first_true_answer_is_returned() -> None:
    answers = iter([None, 0, 7])
    assert wait.until(lambda: next(answers), "an answer", 5) == 7


def test_what_does_not_come_is_named_with_the_log() -> None:
    with pytest.raises(wait.Overdue, match=r"a node Ready: not within 0.1 s\n--- plugin\nlast words"):
        wait.until(lambda: False, "a node Ready", 0.1, [Witness()])


def test_nobody_waits_for_the_dead() -> None:
    with pytest.raises(wait.Overdue, match="plugin ended"):
        wait.until(lambda: False, "a node Ready", 60, [Witness(dead=True)])
