"""What a run has seen, as rows of a result in benchmarks/results: a row for each test, and figures of the tests."""

import statistics
from collections import defaultdict
from pathlib import Path
from typing import Final

from benchmarks.record.recorder import ResultRecorder
from benchmarks.record.result import ResultRow, slug

SCRIPT: Final = "gpu_cluster"
SOURCES: Final = ("limiter/src", "limiter/arbiter", "deviceplugin", "vgpu/node", "tests/gpu_cluster")
MOST_FAULT: Final = 300  # characters


class Sightings:
    """Collects outcomes and figures of all rounds, and rewrites the result's file after each."""

    def __init__(self, path: Path) -> None:
        self._recorder = ResultRecorder(path, SCRIPT, SOURCES, arguments=())
        self._faults: dict[str, list[str]] = defaultdict(list)
        self._figures: dict[str, tuple[str, str, list[float]]] = {}

    def outcome(self, test: str, fault: str) -> None:
        """Add a test's outcome; `fault`: the first line of the failure, empty for none."""
        self._faults[row_id(test)].append(fault)
        self._keep()

    def figure(self, name: str, value: float, unit: str, goal: str) -> None:
        """Add a measured figure."""
        self._figures.setdefault(slug(SCRIPT, name), (unit, goal, []))[2].append(value)
        self._keep()

    def _keep(self) -> None:
        tests = (
            ResultRow(
                id=test,
                value=float(sum(map(bool, faults))),
                unit="faults",
                rounds=tuple(float(bool(fault)) for fault in faults),
                goal="<= 0",
                fault=next(filter(None, faults), "")[:MOST_FAULT],
            )
            for test, faults in self._faults.items()
        )
        figures = (
            ResultRow(id=name, value=statistics.median(rounds), unit=unit, rounds=tuple(rounds), goal=goal)
            for name, (unit, goal, rounds) in self._figures.items()
        )
        self._recorder.replace(*tests, *figures)


def row_id(test: str) -> str:
    """Return the row of a test: `gpu_cluster.the-road-of-a-pod`."""
    return slug(SCRIPT, test.removeprefix("test_").replace("_", " "))
