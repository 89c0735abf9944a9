"""Matrix products in PyTorch under a share: what they get of the card's time, eagerly, as a graph and compiled."""

from typing import Any

from benchmarks.compute.goals import SHOWN, Figures, Scenario, near
from benchmarks.compute.node import Place, gpu_seconds
from benchmarks.compute.reproducibility import said

KINDS = ("eager", "graph", "compile")
CORES = 30
POINTS = 2.0


def shapes(seconds: float) -> list[Scenario]:
    """Each of `KINDS`; natively it is how much of the time is counted as the card's."""
    return [_scenario(kind, seconds) for kind in KINDS]


def _scenario(kind: str, seconds: float) -> Scenario:
    def measure(place: Place) -> Figures:
        env = place.container(CORES)
        told: dict[str, Any] = said([("benchmarks.compute.torch_load", kind, str(seconds))], [env])[0]
        return {"share %": 100 * told["share"], "one ms": told["each_ms"], "counted s": gpu_seconds(env)}

    goals = {"share %": near(CORES, POINTS), "one ms": SHOWN, "counted s": SHOWN}
    return Scenario("torch", f"matrix products of PyTorch, {kind}", goals, measure)
