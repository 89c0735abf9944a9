"""A wait ends with a result, with a timeout, or with the end of an awaited process."""

from dataclasses import dataclass

import pytest

from cluster import wait


@dataclass
class FakeProcess:
    name: str = "plugin"
    is_dead: bool = False

    def tail(self) -> str:
        return "last line"

    def has_ended(self) -> bool:
        return self.is_dead


def test_the_first_true_result_is_returned() -> None:
    results = iter([None, 0, 7])
    assert wait.until(lambda: next(results), "a result", 5) == 7


def test_a_timeout_has_the_log_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wait, "TIME_FACTOR", 2)
    with pytest.raises(wait.Overdue, match=r"a node Ready: not within 0.1 s\n--- plugin\nlast line"):
        wait.until(lambda: False, "a node Ready", 0.05, [FakeProcess()])


def test_the_end_of_a_process_ends_the_wait() -> None:
    with pytest.raises(wait.Overdue, match="plugin ended"):
        wait.until(lambda: False, "a node Ready", 60, [FakeProcess(is_dead=True)])
