"""The latency of a container beside a burner: of short inferences, and of the first kernel after idleness."""

import functools
import statistics
from collections.abc import Sequence
from typing import Any

from benchmarks.compute.load import FeederLoad, TimedLoad, of_alone_percent, run_together
from benchmarks.compute.node import LaunchPlace
from benchmarks.compute.scenario import SHOWN, Figures, Scenario, at_least, at_most
from benchmarks.compute.several_containers import WORK
from benchmarks.container import native_env

REGULAR, ODD = (
    TimedLoad("regular", 450),
    TimedLoad("infer", 450),
)  # two kernels every 10 ms: exactly, or with a random jitter
SHORT = FeederLoad("work", 100)
P50, P99 = 1.25, 2.0  # goals, divided by the latency alone on the card
BURNER = 85.0
TAKEN_MS, GIVEN_MS = 100.0, 20.0
RATE_MS = 20  # work of which the time is taken
NEARLY = 0.9  # of the whole card
AFTER_MS = 300  # how long a container is observed after it is back
PAUSE_S = 2.4  # one third working, one third idle, one third working


def inference(seconds: float) -> list[Scenario]:
    """Beside a burner with policy burst, by the length of its kernels, and beside one with policy best-effort."""
    both, offline = ((50, "burst"), (50, "burst")), ((30, "fixed"), (None, "best-effort"))
    every = (
        ("two kernels each 10 ms beside a burner, burst 50 and 50", both, WORK),
        ("the same, the burner's kernels of 0.1 ms", both, SHORT),
        ("the same, fixed 30 beside best-effort", offline, WORK),
    )
    regular = [_inference(name, REGULAR, asked, burner, seconds) for name, asked, burner in every]
    return regular + [
        _inference(f"{name}, at odd moments", ODD, asked, burner, seconds) for name, asked, burner in every
    ]


def returns() -> list[Scenario]:
    """One of two containers with policy burst goes idle and comes back, with kernels of 1 and of 5 ms."""
    return [_return(us) for us in (1000, 5000)]


def _inference(
    name: str, infer: TimedLoad, asked: Sequence[tuple[int | None, str]], burner: FeederLoad, seconds: float
) -> Scenario:
    def measure(place: LaunchPlace) -> Figures:
        envs = [place.container(*share_asked) for share_asked in asked]
        inferences, burner_work = run_together([(infer, envs[0]), (burner, envs[1])], seconds)
        p50, p99 = _percentiles(inferences["times_us"])
        alone50, alone99 = _alone(infer, seconds)
        return {
            "p50 over alone": p50 / alone50,
            "p99 over alone": p99 / alone99,
            "p50 ms": p50,
            "burner, of alone %": of_alone_percent(burner, burner_work),
        }

    goals = {
        "p50 over alone": at_most(P50) if infer is REGULAR else SHOWN,
        "p99 over alone": at_most(P99),
        "p50 ms": SHOWN,
    }
    return Scenario("inference", name, {**goals, "burner, of alone %": at_least(BURNER)}, measure)


@functools.cache
def _alone(infer: TimedLoad, seconds: float) -> tuple[float, float]:
    """Return the lower of two measurements: noise only adds."""
    times = [run_together([(infer, native_env())], seconds)[0]["times_us"] for _ in range(2)]
    p50, p99 = zip(*map(_percentiles, times), strict=True)
    return min(p50), min(p99)


def _percentiles(times_us: Sequence[int]) -> tuple[float, float]:
    """Return p50 and p99 in ms."""
    cuts = statistics.quantiles(times_us, n=100)
    return cuts[49] / 1000, cuts[98] / 1000


def _return(us: int) -> Scenario:
    def measure(place: LaunchPlace) -> Figures:
        envs = [place.container(50, "burst") for _ in range(2)]
        stays, returns = run_together([(TimedLoad("steady", us), envs[0]), (TimedLoad("pause", us), envs[1])], PAUSE_S)
        return {
            "idle share taken within ms": taken_ms(stays, returns, us),
            "first kernel back within ms": first_ms(returns, us),
            "most behind when back, ms": behind_ms(returns, us),
        }

    goals = {"idle share taken within ms": at_most(TAKEN_MS), "first kernel back within ms": at_most(GIVEN_MS)}
    name = f"one of two goes idle and comes back, kernels of {us // 1000} ms"
    return Scenario("burst", name, {**goals, "most behind when back, ms": SHOWN}, measure)


def taken_ms(stays: dict[str, Any], returns: dict[str, Any], us: int) -> float:
    """Return how long after the last kernel of the container that goes idle the other one has nearly the whole card.

    Then as many kernels of `us` us as make RATE_MS of work end within RATE_MS / NEARLY.
    """
    last = max(end for end in returns["times_us"] if end < returns["back_us"])
    ends = [end for end in stays["times_us"] if end >= last]
    longest = RATE_MS * 1000 / NEARLY
    full = (end for end, later in zip(ends, ends[RATE_MS * 1000 // us :], strict=False) if later - end <= longest)
    return float(next(full, returns["back_us"]) - last) / 1000


def first_ms(returns: dict[str, Any], us: int) -> float:
    """Return the time from the return of the idle container to the begin of its first kernel."""
    first = min(end for end in returns["times_us"] if end > returns["back_us"])
    return float(first - us - returns["back_us"]) / 1000


def behind_ms(returns: dict[str, Any], us: int) -> float:
    """Return the largest deficit of the returning container against half of the card's time, at the ends of kernels."""
    back = returns["back_us"]
    ends = [end - back for end in returns["times_us"] if back < end < back + AFTER_MS * 1000]
    return float(max(end / 2 - number * us for number, end in enumerate(ends)) / 1000)
