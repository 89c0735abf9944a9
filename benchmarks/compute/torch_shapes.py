"""Matrix products of PyTorch under a share: the share of the card's time they get, eager, as a graph and compiled."""

from typing import Any

from benchmarks.compute.node import LaunchPlace, gpu_seconds
from benchmarks.compute.reproducibility import last_lines
from benchmarks.compute.scenario import SHOWN, Figures, Scenario, near

KINDS = ("eager", "graph", "compile")
CORES = 30
POINTS = 2.0


def shapes(seconds: float) -> list[Scenario]:
    """Each of `KINDS`. The native figure is the share of the time that counts as the card's."""
    return [_scenario(kind, seconds) for kind in KINDS]


def _scenario(kind: str, seconds: float) -> Scenario:
    def measure(place: LaunchPlace) -> Figures:
        env = place.container(CORES)
        answer: dict[str, Any] = last_lines([("benchmarks.compute.torch_load", kind, str(seconds))], [env])[0]
        return {"share %": 100 * answer["share"], "one ms": answer["each_ms"], "counted s": gpu_seconds(env)}

    goals = {"share %": near(CORES, POINTS), "one ms": SHOWN, "counted s": SHOWN}
    return Scenario("torch", f"matrix products of PyTorch, {kind}", goals, measure)
