"""The steps of a session on a GPU machine, the most important first: see `benchmarks.gpu_session`."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from benchmarks.record import machine

BASELINE = "-baseline"  # the end of the name of a step that runs in the other checkout


@dataclass(frozen=True, slots=True)
class SessionStep:
    """A command and its time limit.

    Attributes:
        name: in the table, and on the command line.
        limit_s: seconds after which it is killed.
        command: run in the folder.
        quick: arguments added to see only whether it runs.
        has_figures: whether it takes `--json FILE`.
        on_demand: whether it runs only when it is named.
        env: added to the environment.
        folder: in which it runs; None = this checkout.
        commit: of the folder, when it is not this checkout.
    """

    name: str
    limit_s: float
    command: tuple[str, ...]
    quick: tuple[str, ...] = ()
    has_figures: bool = False
    on_demand: bool = False
    env: Mapping[str, str] = field(default_factory=dict)
    folder: Path | None = None
    commit: str = ""

    @property
    def is_baseline(self) -> bool:
        """Whether it measures the other checkout of a regression session."""
        return self.name.endswith(BASELINE)


def _benchmark(name: str, limit_s: float, module: str, *arguments: str, on_demand: bool = False) -> SessionStep:
    command = (sys.executable, "-m", f"benchmarks.{module}", *arguments)
    return SessionStep(name, limit_s, command, quick=("--quick",), has_figures=True, on_demand=on_demand)


def _test(name: str, limit_s: float, *arguments: str, on_demand: bool = False) -> SessionStep:
    module = arguments[0] if arguments else name
    return SessionStep(
        name, limit_s, (sys.executable, "-m", f"tests.gpu.{module}", *arguments[1:]), on_demand=on_demand
    )


MEMORY: Final = (
    _benchmark("leaks", 120, "limiter_memory", "leaks"),
    _benchmark("costs", 180, "limiter_memory", "twins", "costs"),
    _benchmark("kills", 330, "limiter_races", "kills"),
    _benchmark("races of 64", 210, "limiter_races", "race", "--processes", "64"),
    _benchmark("torch step", 150, "memory.torch_step"),
    _test("overhead", 120),
    _test("classes", 60, "memory_classes"),
    _test("pools", 60, "pool_growth"),
    _benchmark("exporters", 60, "limiter_races", "shared", "exec"),
    _benchmark("locks", 150, "limiter_races", "locks"),
    _test("view", 30, "process_view"),
    _test("load paths", 180, "load_paths"),
    _test("sandboxes", 120),
    _benchmark("pairs", 240, "limiter_memory", "pairs"),
    _benchmark("crowds", 200, "limiter_memory", "crowds"),
    _test("resize", 60),
    _test("visible cards", 120, "visible_cards"),
    _test("frameworks", 400, on_demand=True),
    _benchmark("races", 260, "limiter_races", "race", on_demand=True),
    _test("spill", 60, on_demand=True),  # asks for more managed memory than the card has free, which may hang a card
)

TWO_CARDS: Final = (
    _test("visible cards", 240, "visible_cards"),
    _test("NCCL", 200, "frameworks", "torch DDP, NCCL"),
)

COMPUTE: Final = (
    _benchmark("tenants", 120, "limiter_compute", "tenants", "burst", "inference"),
    _benchmark("arbiter", 90, "limiter_compute", "arbiter"),
    _benchmark("same", 240, "limiter_compute", "same"),
    _benchmark("alone", 180, "limiter_compute", "stall", "curve", "shapes", "costs"),
    _benchmark("accounting", 900, "accounting", on_demand=True),
)

SHARES = ("tenants", "burst", "inference", "stall", "arbiter", "curve", "shapes", "costs")
NOW: Final = (
    _benchmark("memory", 280, "limiter_memory", "leaks", "costs"),
    _benchmark("shares", 420, "limiter_compute", *SHARES),
    _benchmark("torch", 280, "limiter_compute", "torch", "same"),
)


def _with_baseline(steps: tuple[SessionStep, ...]) -> tuple[SessionStep, ...]:
    return tuple(replace(step, name=step.name + end) for step in steps for end in ("", BASELINE))


def _programs(name: str, limit_s: float, *arguments: str) -> SessionStep:
    step = _benchmark(name, limit_s, "limiter_programs", *arguments)
    return replace(step, quick=("--seconds", "1"))


LATENCY: Final = (
    _benchmark("inference", 110, "limiter_compute", "inference"),
    _programs("loads", 120, "loads", "--seconds", "4"),
    _programs("decode", 150, "decode", "--seconds", "4"),
    _programs("training", 150, "training", "--seconds", "4"),
)
_BESIDE: Final = ("limiter_crowds", "space", "--only", "beside fixed 30", "--seconds", "4", "--explain")
SPACE: Final = (  # groups in space: each needs nvidia-cuda-mps-control
    _benchmark("space leaks", 120, "limiter_memory", "leaks", "--space"),
    _benchmark("space races", 300, "limiter_races", "race", "kills", "--space"),
    replace(_benchmark("space faults", 240, "space.faults"), quick=()),
    replace(_benchmark("space beside", 200, *_BESIDE), quick=("--seconds", "1")),
)
REGRESSION: Final = _with_baseline(NOW)
PROGRAMS: Final = _with_baseline(LATENCY)

LISTS: Final = {
    "compute": COMPUTE,
    "memory": MEMORY,
    "two-cards": TWO_CARDS,
    "regression": REGRESSION,
    "programs": PROGRAMS,
    "space": SPACE,
}


def in_baseline(step: SessionStep, folder: Path, commit: str) -> SessionStep:
    """Return the step, in the other checkout when it is a baseline's."""
    if not step.is_baseline:
        return step
    return replace(step, folder=folder.resolve(), commit=commit, env={**step.env, machine.COMMIT_ENV: commit})
