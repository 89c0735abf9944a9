"""Situations that could break a program whose launches are queued ahead of their turn, or the program beside it.

    python -m benchmarks.compute.queue_hazards [NAME ...] [--rounds N]

A tenant with policy burst is killed, stopped and so on while its work is queued behind closed waits. Its neighbour, in
another container, keeps the card busy; the times at which the neighbour's kernels end show how long anybody outside
waits. Each hazard is measured with a neighbour of each policy and, unless it is of the arbiter, natively. Prints a
table and exits with 1 when a goal is missed. With SIMGPU_STATE set it runs on the simulated driver, which computes no
results.
"""

import argparse
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import limiter
from benchmarks.compute.load import Feeder, TimedLoad, run_together, sleep_until
from benchmarks.compute.node import BenchmarkNode, Env, LaunchPlace, cards_of
from benchmarks.compute.scenario import SHOWN, Figures, Goal, Scenario, ScenarioFigure, at_least, at_most, table

TENANT = (40, "burst")
BEST_EFFORT = "best-effort"
NEIGHBOURS = {BEST_EFFORT: (None, BEST_EFFORT), "burst 60": (60, "burst")}
STEADY = TimedLoad("steady", 500)
SECONDS = 5.0  # of the neighbour; a hazard takes less
ODD_S = (0.2, 0.237, 0.213, 0.251, 0.309)  # times of work after which programs are killed or stopped
SOON_S, STOPPED_S, LATER_S = 0.4, 0.4, 0.5
CONNECTIONS = ("1", "8", "32")  # values of CUDA_DEVICE_MAX_CONNECTIONS

OUTSIDE, QUEUED, WRONG, AFTERWARDS = "longest wait outside ms", "queued launches", "wrong results", "neighbour then %"
PULSE, GOES_ON = "longest pulse ms", "done after SIGCONT ms"
OUTSIDE_MS = 100.0  # closed waits open 60 ms after the last heartbeat of the arbiter
PULSE_MS = 250.0  # 20 ms of work at 40 % of the card, and 60 ms without a heartbeat
END_MS = 1000.0
ALONE = 85.0  # percent of the card's time that the neighbour has once the tenant has ended


@dataclass(frozen=True, slots=True)
class Hazard:
    """What happens to the tenant.

    Attributes:
        programs: the kind of each of its processes, of `queued_tenant.py`, with more environment for it.
        happens: lets it happen, and returns figures.
        goals: of these figures.
        has_native: whether it can happen natively.
    """

    programs: Sequence[tuple[str, Env]]
    happens: Callable[[LaunchPlace, Sequence[Feeder]], Figures]
    goals: dict[str, Goal] = field(default_factory=dict)
    has_native: bool = True


@dataclass(frozen=True, slots=True)
class Queued:
    """The work of one process of `queued_tenant.py`."""

    kind: str

    def command(self, seconds: float) -> list[str]:  # noqa: ARG002 - it works until a line comes
        """Return the command line."""
        return [sys.executable, "-m", "benchmarks.compute.queued_tenant", self.kind]


def _ms_since(begun: float) -> float:
    return 1000 * (time.monotonic() - begun)


def _finish(tenant: Feeder) -> Figures:
    tenant.go()
    answer = tenant.answer()
    return {PULSE: answer["longest_ms"], WRONG: answer["wrong"]}


def _undisturbed(_place: LaunchPlace, tenants: Sequence[Feeder]) -> Figures:
    tenants[0].go()
    time.sleep(2 * LATER_S)
    return _finish(tenants[0])


def _killed(_place: LaunchPlace, tenants: Sequence[Feeder]) -> Figures:
    """Kill each program after another time of work, and the last one idle."""
    *working, idle = tenants
    took = []
    for tenant, seconds in zip(working, ODD_S, strict=True):
        tenant.go()
        time.sleep(seconds)
        took.append(_kill(tenant))
    return {"teardown ms": max(took), "teardown when idle ms": _kill(idle)}


def _kill(tenant: Feeder) -> float:
    begun = time.monotonic()
    tenant.send_signal(signal.SIGKILL)
    tenant.wait()
    return _ms_since(begun)


def _stopped(_place: LaunchPlace, tenants: Sequence[Feeder]) -> Figures:
    """Stop the program several times; after the last time let it complete its work."""
    (tenant,) = tenants
    tenant.go()
    for seconds in ODD_S:
        time.sleep(seconds)
        tenant.send_signal(signal.SIGSTOP)
        time.sleep(STOPPED_S)
        tenant.send_signal(signal.SIGCONT)
    begun = time.monotonic()
    return {WRONG: _finish(tenant)[WRONG], GOES_ON: _ms_since(begun)}


def _exits(_place: LaunchPlace, tenants: Sequence[Feeder]) -> Figures:
    return {f"{kind} ms": _exit(tenant) for kind, tenant in zip(EXITS, tenants, strict=True)}


def _exit(tenant: Feeder) -> float:
    tenant.go()
    time.sleep(SOON_S)
    tenant.go()
    begun = tenant.answer()["ns"] / 1e9
    if status := tenant.wait():
        raise RuntimeError(f"it ended with {status}")
    return _ms_since(begun)


def _forks(_place: LaunchPlace, tenants: Sequence[Feeder]) -> Figures:
    (tenant,) = tenants
    tenant.go()
    time.sleep(SOON_S)
    tenant.go()
    answer = tenant.answer()
    return {"two children ms": answer["children_ms"], "failed children": answer["failed"], WRONG: answer["wrong"]}


def _streams(_place: LaunchPlace, tenants: Sequence[Feeder]) -> Figures:
    figures: dict[str, float] = {WRONG: 0}
    for connections, tenant in zip(CONNECTIONS, tenants, strict=True):
        begun = time.monotonic()
        figures[WRONG] += _finish(tenant)[WRONG]
        figures[f"{connections} connections ms"] = _ms_since(begun)
    return figures


def _arbiter(*steps: Callable[[BenchmarkNode], None]) -> Callable[[LaunchPlace, Sequence[Feeder]], Figures]:
    """Return what happens when the arbiter goes through the steps, one each LATER_S."""

    def happens(place: LaunchPlace, tenants: Sequence[Feeder]) -> Figures:
        assert isinstance(place, BenchmarkNode)
        tenants[0].go()
        for step in steps:
            time.sleep(LATER_S)
            step(place)
        time.sleep(LATER_S)
        return _finish(tenants[0])

    return happens


def _kill_arbiter(node: BenchmarkNode) -> None:
    node.signal_arbiter(signal.SIGKILL)


def _stop_arbiter(node: BenchmarkNode) -> None:
    node.signal_arbiter(signal.SIGSTOP)


ONE: list[tuple[str, Env]] = [("pulses", {})]
EXITS = ("exit", "_exit", "exec")
RIGHT = {WRONG: at_most(0)}
GOES = {PULSE: at_most(PULSE_MS), **RIGHT}
GONE = {AFTERWARDS: at_least(ALONE)}
KILLED = {"teardown ms": at_most(END_MS), "teardown when idle ms": SHOWN, **GONE}
EXITED = {**{f"{kind} ms": at_most(END_MS) for kind in EXITS}, **GONE}
FORKED = {"two children ms": at_most(END_MS), "failed children": at_most(0), **RIGHT}
STREAMS = {**RIGHT, **{f"{connections} connections ms": at_most(END_MS) for connections in CONNECTIONS}}
HAZARDS = {
    "undisturbed": Hazard(ONE, _undisturbed, GOES),
    "queued_killed": Hazard(ONE * (len(ODD_S) + 1), _killed, KILLED),
    "queued_stopped": Hazard(ONE, _stopped, {GOES_ON: at_most(PULSE_MS), **RIGHT}),
    "queued_exits": Hazard([(kind, {}) for kind in EXITS], _exits, EXITED),
    "queued_forks": Hazard([("forks", {})], _forks, FORKED),
    "arbiter_killed": Hazard(ONE, _arbiter(_kill_arbiter), GOES, has_native=False),
    "arbiter_stopped": Hazard(ONE, _arbiter(_stop_arbiter), GOES, has_native=False),
    "arbiter_restarted": Hazard(ONE, _arbiter(_kill_arbiter, BenchmarkNode.start_arbiter), GOES, has_native=False),
    "streams": Hazard(
        [("streams", {"CUDA_DEVICE_MAX_CONNECTIONS": connections}) for connections in CONNECTIONS], _streams, STREAMS
    ),
}


def _scenario(name: str, neighbour: str) -> Scenario:
    """Return a hazard beside a neighbour. Natively there are no policies, so one neighbour is enough."""
    hazard = HAZARDS[name]

    def measure(place: LaunchPlace) -> Figures:
        tenant, other = place.container(*TENANT), place.container(*NEIGHBOURS[neighbour])
        programs = [Feeder(Queued(kind), 0, {**tenant, **more}) for kind, more in hazard.programs]
        try:
            for program in programs:
                program.await_start()
            before = 0 if place.native else _queued(tenant)
            figures = _beside(other, lambda: hazard.happens(place, programs))
            return figures if place.native else {**figures, QUEUED: _queued(tenant) - before}
        finally:
            for program in programs:
                program.end()

    goals = {OUTSIDE: at_most(OUTSIDE_MS), **hazard.goals, QUEUED: at_least(1)}
    return Scenario(name, f"beside {neighbour}", goals, measure, hazard.has_native and neighbour == BEST_EFFORT)


def _beside(other: Env, happens: Callable[[], Figures]) -> Figures:
    """Let it happen beside a neighbour; add the neighbour's longest wait, and its part of the card afterwards."""
    figures: dict[str, float] = {}
    took_us = 0.0

    def meanwhile(begin_ns: int) -> None:
        nonlocal took_us
        sleep_until(begin_ns)
        figures.update(happens())
        took_us = (time.monotonic_ns() - begin_ns) / 1e3

    (answer,) = run_together([(STEADY, other)], SECONDS, meanwhile)
    until_us = SECONDS * 1e6
    if took_us > until_us:
        raise RuntimeError(f"it took {took_us / 1e6:.1f} s, longer than its neighbour works: {figures}")
    ends = [end for end in answer["times_us"] if end < until_us]
    waits = [later - end - STEADY.us for end, later in zip([0, *ends], [*ends, until_us], strict=True)]
    figures[OUTSIDE] = max(waits) / 1000
    figures[AFTERWARDS] = 100 * STEADY.us * sum(end > took_us for end in ends) / (until_us - took_us)
    return figures


def _queued(env: Env) -> int:
    """Return how many launches of a container were put behind a closed wait so far."""
    return sum(card.activity.queued_launches for card in cards_of(env))


def main() -> int:
    """Run the hazards named, all by default; return 1 when a goal was missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(HAZARDS)}")
    parser.add_argument("--rounds", type=int, default=1, help="with the limiter")
    asked = parser.parse_args()
    if unknown := set(asked.names) - set(HAZARDS):
        parser.error(f"no such hazard: {', '.join(sorted(unknown))}")
    limiter.arbiter_path()  # raises at once when it is not built
    scenarios = [_scenario(name, neighbour) for name in asked.names or HAZARDS for neighbour in NEIGHBOURS]
    rows = list(table(scenarios, asked.rounds))
    waits = [row for row in rows if isinstance(row, ScenarioFigure) and row.figure == OUTSIDE]
    for longest in sorted(waits, key=lambda row: row.worst)[-1:]:
        print(f"the longest wait of anybody outside: {longest.worst:.1f} ms, {longest.part} {longest.name}")
    return 1 if any(row.fault for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
