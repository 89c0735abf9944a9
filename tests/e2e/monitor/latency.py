"""The prober's answers: which of them were slow or missing, and the p50, p99 and maximum of each question."""

import json
import sys
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple, Self

from cluster import process, wait
from cluster.cluster import GpuCluster
from cluster.programs import binaries

SLOW_S: Final = wait.allowed(1.0)


class Answer(NamedTuple):
    """One answer of a part; `status` is 0 where none came within the prober's timeout."""

    at: float
    what: str
    ms: float
    status: int
    late_ms: float

    @property
    def is_slow(self) -> bool:
        """Whether the part, and not the prober's own delay, took longer than `SLOW_S`."""
        return self.ms - self.late_ms > SLOW_S * 1000

    @property
    def has_failed(self) -> bool:
        return not 200 <= self.status < 300


class Prober:
    """The prober as a process of a cluster."""

    def __init__(self, cluster: GpuCluster) -> None:
        command = [sys.executable, "-m", "tests.e2e.monitor.prober", *(node.name for node in cluster.nodes)]
        environment = {"PYTHONPATH": str(binaries.REPOSITORY)}
        self._process = process.ClusterProcess("prober", command, cluster.within, cluster.work / "logs", environment)
        self._read = 0
        self.answers: list[Answer] = []

    def __enter__(self) -> Self:
        self._process.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()

    def new(self) -> list[Answer]:
        """Return the answers since the last call, and keep them."""
        with self._process.log.open("rb") as log:
            log.seek(self._read)
            data = log.read()
        complete = data[: data.rfind(b"\n") + 1]
        self._read += len(complete)
        found = list(_answers(complete.splitlines()))
        self.answers += found
        return found


def _answers(lines: Iterable[bytes]) -> Iterator[Answer]:
    for line in lines:
        try:
            yield Answer(**json.loads(line))
        except (ValueError, TypeError):
            continue  # an error of the prober's own


def table(answers: Iterable[Answer]) -> list[str]:
    """Return lines of text: p50, p99 and maximum in ms of each question, and how many answers were slow or missing."""
    by_name: dict[str, list[Answer]] = {}
    for answer in answers:
        by_name.setdefault(answer.what, []).append(answer)
    lines = [f"{'socket':20} {'asked':>7} {'failed':>7} {'p50 ms':>8} {'p99 ms':>8} {'max ms':>9} {'slow':>6}"]
    for name, samples in sorted(by_name.items()):
        times = sorted(answer.ms for answer in samples)
        failed, slow = sum(a.has_failed for a in samples), sum(a.is_slow for a in samples)
        lines.append(
            f"{name:20} {len(samples):7} {failed:7} {_quantile(times, 0.5):8.1f} {_quantile(times, 0.99):8.1f} "
            f"{times[-1]:9.1f} {slow:6}"
        )
    return lines


def _quantile(ordered: list[float], part: float) -> float:
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]
