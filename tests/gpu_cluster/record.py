"""What a run has seen, as rows of a result in benchmarks/results: a row for each test, and figures of the tests."""

import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from benchmarks.record.recorder import ResultRecorder
from benchmarks.record.result import ResultRow, slug

SCRIPT: Final = "gpu_cluster"
SOURCES: Final = ("limiter/src", "limiter/arbiter", "deviceplugin", "vgpu/node", "tests/gpu_cluster/programs")
MOST_FAULT: Final = 300  # characters


class Sightings:
    """Collects outcomes and figures of all rounds, and rewrites the result's file after each."""

    def __init__(self, path: Path) -> None:
        self._recorder = ResultRecorder(path, SCRIPT, SOURCES, arguments=())
        self._faults: dict[str, list[str]] = defaultdict(list)
        self._figures: dict[str, list[ResultRow]] = defaultdict(list)

    def outcome(self, test: str, fault: str) -> None:
        """Add a test's outcome; `fault`: the first line of the failure, empty for none."""
        self._faults[row_id(test)].append(fault)
        self._keep()

    def figure(self, name: str, value: float, unit: str, goal: str = "", *, is_met: bool = True) -> bool:
        """Add a measured figure, and return whether it meets its goal."""
        fault = "" if is_met else f"{value:.3f}, goal {goal}"
        found = ResultRow(id=slug(SCRIPT, name), value=value, unit=unit, goal=goal, fault=fault)
        self._figures[found.id].append(found)
        self._keep()
        return is_met

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
        self._recorder.replace(*tests, *map(_median, self._figures.values()))


def _median(rounds: Sequence[ResultRow]) -> ResultRow:
    """Return the figure of all rounds: its median, and the fault of the first round that has one."""
    values = tuple(row.value for row in rounds if row.value is not None)
    fault = next((row.fault for row in rounds if row.fault), "")
    return replace(rounds[0], value=statistics.median(values), rounds=values, fault=fault)


def row_id(test: str) -> str:
    """Return the row of a test: `gpu_cluster.the-road-of-a-pod`."""
    return slug(SCRIPT, test.removeprefix("test_").replace("_", " "))
