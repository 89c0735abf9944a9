"""Programs that launch a step and wait for it, as decoders with a graph for each token, beside each other."""

from collections.abc import Sequence
from typing import Any, Final

from benchmarks.compute.load import FeederLoad, FeederWork, run_together
from benchmarks.compute.node import LaunchPlace
from benchmarks.compute.scenario import SHOWN, Figures, Scenario
from benchmarks.small_programs.requests_load import WARM_NS, RequestLoad, Requests, p99_ms

PART: Final = "steps"
FULL: Final = 100
STEPS_US: Final = (300, 650, 950, 1500, 2000, 3000, 4000, 8000)
AROUND: Final = {950, 2000}  # with pauses, and with neighbours, too
RESTS_US: Final = (100, 300)  # after each step
UNEQUAL: Final = ((2000, 950), (4000, 650), (4000, 2000), (8000, 2000))
QUEUE: Final = FeederLoad("async", 500)  # always ahead of the card, as a trainer


def steps(seconds: float) -> list[Scenario]:
    """Two or three programs with steps of one length or of two, also beside one that is always ahead of the card."""
    plain = [_together([_step(us)] * 2, seconds) for us in STEPS_US]
    resting = [_together([_step(us, rest)] * 2, seconds) for us in sorted(AROUND) for rest in RESTS_US]
    unequal = [_together([_step(us) for us in pair], seconds) for pair in UNEQUAL]
    three = [_together([_step(us)] * 3, seconds) for us in sorted(AROUND)]
    beside = [_together([_step(us)] * count + [QUEUE], seconds) for us in sorted(AROUND) for count in (1, 2)]
    return [*plain, *resting, *unequal, *three, *beside]


def _step(us: int, rest_us: int = 0) -> RequestLoad:
    return RequestLoad(launches=1, us=us, host_us=0, rest_us=rest_us)


def _together(loads: Sequence[FeederWork], seconds: float) -> Scenario:
    cores = FULL // len(loads)
    goals = dict.fromkeys([label for number, load in enumerate(loads, 1) for label in _labels(number, load)], SHOWN)

    def measure(place: LaunchPlace) -> Figures:
        envs = [place.container(cores, "burst") for _ in loads]
        answers = run_together(list(zip(loads, envs, strict=True)), seconds, warm_ns=WARM_NS)
        figures: dict[str, float] = {}
        worked = 0.0
        for number, (load, answer) in enumerate(zip(loads, answers, strict=True), 1):
            values = _values(load, answer, seconds)
            worked += values[0]
            figures |= dict(zip(_labels(number, load), values, strict=True))
        return {**figures, "sum %": worked}

    return Scenario(PART, f"{_name(loads)}, burst {cores} each", {**goals, "sum %": SHOWN}, measure)


def _name(loads: Sequence[FeederWork]) -> str:
    rest = max((load.rest_us for load in loads if isinstance(load, RequestLoad)), default=0)
    each = " + ".join(f"{load.us / 1000:g}" if isinstance(load, RequestLoad) else "queue" for load in loads)
    return f"steps of {each} ms" + (f" and {rest / 1000:g} ms between them" if rest else "")


def _labels(number: int, load: FeederWork) -> list[str]:
    own = f"program {number}:"
    is_stepping = isinstance(load, RequestLoad)
    return [f"{own} kernels %", *([f"{own} steps each s", f"{own} p50 ms", f"{own} p99 ms"] if is_stepping else [])]


def _values(load: FeederWork, answer: dict[str, Any], seconds: float) -> list[float]:
    if not isinstance(load, RequestLoad):
        return [FULL * answer["count"] * QUEUE.us * 1000 / answer["ns"]]
    served = Requests.of(answer, seconds)
    ordered = sorted(served.times_us)
    p50 = ordered[len(ordered) // 2] / 1000 if ordered else 0.0
    return [served.rate() * load.kernels_us / 1e4, served.rate(), p50, p99_ms([served])]
