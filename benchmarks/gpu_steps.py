"""The steps of a session on a GPU machine, the most important first: see `benchmarks.gpu_session`."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, slots=True)
class Step:
    """A command and its time limit.

    Attributes:
        name: in the table, and on the command line.
        limit_s: seconds after which it is killed.
        command: run in the root of the tree.
        quick: arguments added to see only whether it runs.
        has_figures: whether it takes `--json FILE`.
        on_demand: whether it runs only when it is named.
        env: added to the environment.
    """

    name: str
    limit_s: float
    command: tuple[str, ...]
    quick: tuple[str, ...] = ()
    has_figures: bool = False
    on_demand: bool = False
    env: Mapping[str, str] = field(default_factory=dict)


def _benchmark(name: str, limit_s: float, module: str, *arguments: str, on_demand: bool = False) -> Step:
    command = (sys.executable, "-m", f"benchmarks.{module}", *arguments)
    return Step(name, limit_s, command, quick=("--quick",), has_figures=True, on_demand=on_demand)


def _test(name: str, limit_s: float, *arguments: str, on_demand: bool = False) -> Step:
    module = arguments[0] if arguments else name
    return Step(name, limit_s, (sys.executable, "-m", f"tests.gpu.{module}", *arguments[1:]), on_demand=on_demand)


MEMORY: Final = (
    _benchmark("leaks", 120, "limiter_memory", "leaks"),
    _benchmark("costs", 180, "limiter_memory", "twins", "costs"),
    _benchmark("kills", 240, "limiter_races", "kills"),
    _benchmark("races of 64", 150, "limiter_races", "race", "--processes", "64"),
    _benchmark("torch step", 150, "memory.torch_step"),
    _test("overhead", 120),
    _test("classes", 60, "memory_classes"),
    _test("pools", 60, "pool_growth"),
    _benchmark("exporters", 60, "limiter_races", "shared", "exec"),
    _benchmark("locks", 150, "limiter_races", "locks"),
    _test("view", 30, "process_view"),
    _test("doors", 180, "load_paths"),
    _benchmark("pairs", 240, "limiter_memory", "pairs"),
    _benchmark("crowds", 200, "limiter_memory", "crowds"),
    _test("resize", 60),
    _test("visible", 120, "visible_cards"),
    _test("frameworks", 400, on_demand=True),
    _benchmark("races", 260, "limiter_races", "race", on_demand=True),
    _test("spill", 60, on_demand=True),  # asks for more managed memory than the card has free, which may hang a card
)

TWO_CARDS: Final = (
    _test("visible", 240, "visible_cards"),
    _test("NCCL", 200, "frameworks", "torch DDP, NCCL"),
)

COMPUTE: Final = (
    _benchmark("tenants", 120, "limiter_compute", "tenants", "burst", "inference"),
    _benchmark("arbiter", 90, "limiter_compute", "arbiter"),
    _benchmark("same", 240, "limiter_compute", "same"),
    _benchmark("alone", 180, "limiter_compute", "stall", "curve", "shapes", "costs"),
)

LISTS: Final = {"compute": COMPUTE, "memory": MEMORY, "two-cards": TWO_CARDS}
