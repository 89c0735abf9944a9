"""Workers of one container killed while they allocate: what is charged is what the living hold, at each look."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.memory import driver_time
from benchmarks.memory.nvml_watcher import Watcher
from benchmarks.memory.races import LONGEST_NS, START_MIB, Outcome, charged_to_the_living
from benchmarks.memory.worker import MIB, Container, native_env
from benchmarks.programs.process import Program

EACH_ROOM = 48 * MIB
NEAR = 16 * MIB  # of what is charged: contexts grow a little while they work
AT_ONCE = 20
TELL_EVERY_S = 10.0


@dataclass(frozen=True, slots=True)
class Plan:
    """So many kills among so many workers, looked at after every so many, until so many seconds have passed."""

    workers: int
    kills: int
    looks: int
    seconds: float
    seed: int


def kill(watcher: Watcher, plan: Plan) -> Outcome:
    """Kill workers at random instants, and compare what the living hold with what is charged.

    The driver itself lets all wait while it clears a dead process away. So what is judged is how long a call was
    outside the driver's own functions.
    """
    outcome = Outcome(f"{plan.kills} kills among {plan.workers}")
    watcher.settle()
    with (
        Container(str(START_MIB)) as container,
        driver_time.counted(container.env) as env,
        Program(env, "kills", plan.workers, plan.seed) as program,
    ):
        program.hear()
        container.limit(container.used() + plan.workers * EACH_ROOM)
        outcome.figures = {"looks": 0}
        for killed in _kill(program, plan, outcome):
            outcome.figures["kills"] = killed
            outcome.figures["looks"] += 1
            _look(container, program, outcome)
            container.limit(container.used() + plan.workers * EACH_ROOM)
        outcome.figures |= {name: getattr(container.region(), name) for name in ("recoveries", "reaped", "timeouts")}
    _judge(outcome)
    return outcome


def kill_natively(plan: Plan) -> Outcome:
    """Do the same without limits, for the waits that are the driver's own."""
    outcome = Outcome(f"{plan.kills} kills among {plan.workers}, natively")
    with driver_time.counted(native_env()) as env, Program(env, "kills", plan.workers, plan.seed) as program:
        program.hear()
        for killed in _kill(program, plan, outcome):
            outcome.figures = {"kills": killed, **program.ask("hold")}
            program.ask("give")
    return outcome


def _kill(program: Program, plan: Plan, outcome: Outcome) -> Iterator[int]:
    """Yield how many have been killed, whenever it is time to look; the last time is the end."""
    begun = told = time.monotonic()
    killed = 0
    while killed < plan.kills and time.monotonic() < begun + plan.seconds:
        look = min(plan.kills, killed + -(-plan.kills // plan.looks))
        while killed < look and time.monotonic() < begun + plan.seconds:
            killed += program.ask(f"kill {min(AT_ONCE, look - killed)}")["killed"]
            if time.monotonic() > told + TELL_EVERY_S:
                told = time.monotonic()
                print(f"  {killed} killed after {told - begun:.0f} s", flush=True)
        yield killed
    outcome.check(killed == plan.kills, f"{killed} kills in {plan.seconds:.0f} s")


def _look(container: Container, program: Program, outcome: Outcome) -> None:
    """Compare while the workers stand still, first with what they hold and then without."""
    held = program.ask("hold")
    container.limit(START_MIB * MIB)
    charged = charged_to_the_living(container, outcome)
    program.ask("give")
    charged -= charged_to_the_living(container, outcome)
    outcome.figures |= {**held, "charged": charged}
    at = f"after {outcome.figures['kills']} kills"
    outcome.check(abs(charged - held["held"]) <= NEAR, f"{at}: {held['held']} bytes held, {charged} charged")


def _judge(outcome: Outcome) -> None:
    wrong, longest = outcome.figures["wrong"], outcome.figures["longest_outside_ns"]
    outcome.check(wrong == 0, f"{wrong} wrong codes or deaths")
    outcome.check(longest < LONGEST_NS, f"waited {longest / 1e6:.1f} ms outside the driver")
