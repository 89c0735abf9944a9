"""`make cluster` says that a part has ended, which would otherwise look like a cluster that answers strangely."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from cluster.__main__ import report_ended


@dataclass
class Part:
    """A process that ends at a time, in looks from the start."""

    name: str
    ends_at: int
    looks: int = 0
    log: Path = Path("/logs/part.log")

    def has_ended(self) -> bool:
        self.looks += 1
        return self.looks > self.ends_at

    def tail(self) -> str:
        return f"{self.name}: no memory"


class CtrlC(Exception):
    pass


def test_each_process_that_has_ended_is_named_once_with_the_end_of_its_log() -> None:
    said: list[str] = []
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 10:
            raise CtrlC

    with pytest.raises(CtrlC):
        report_ended([Part("etcd", 100), Part("kubelet", 3), Part("webhook", 0)], said.append, sleep)
    assert [line.partition(" ")[0] for line in said] == ["webhook", "kubelet"]
    assert "/logs/part.log:\nkubelet: no memory" in said[1]
