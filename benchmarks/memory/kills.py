"""Workers of one container that are killed while they allocate: living processes are charged exactly what they hold."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.container import LimitedContainer, native_env
from benchmarks.memory import driver_time
from benchmarks.memory.nvml_watcher import Watcher
from benchmarks.memory.outcome import LONGEST_NS, START_MIB, TrialOutcome, charged_to_living
from benchmarks.memory.worker import MIB
from benchmarks.programs.process import CompiledProgram

EACH_ROOM = 48 * MIB
NEAR = 16 * MIB  # contexts grow a little while they work
AT_ONCE = 20
REPORT_EVERY_S = 10.0


@dataclass(frozen=True, slots=True)
class KillCampaign:
    """A campaign.

    Attributes:
        workers: number of processes.
        kills: number of kills.
        looks: how often the charges are compared, at equal distances.
        seconds: after which no more kills are made.
        seed: of the random instants.
        pipe: pipe directory of the daemon of MPS below which all of it happens; None: without MPS.
    """

    workers: int
    kills: int
    looks: int
    seconds: float
    seed: int
    pipe: Path | None = None

    @property
    def program(self) -> tuple[str, ...]:
        """The program and its arguments. A member of a group has no unified memory, so that class is left out."""
        return ("kills", str(self.workers), str(self.seed), *(() if self.pipe is None else ("member",)))


def kill(watcher: Watcher, plan: KillCampaign) -> TrialOutcome:
    """Kill workers at random instants, and compare what living workers hold with what they are charged.

    The driver itself makes all processes wait while it cleans up after a dead one. So the goal is for the time that a
    call spends outside the driver's own functions.
    """
    outcome = TrialOutcome(f"{plan.kills} kills among {plan.workers}")
    watcher.await_free_memory()
    with (
        LimitedContainer(str(START_MIB), pipe=plan.pipe) as container,
        driver_time.measured(container.env) as env,
        CompiledProgram(env, *plan.program) as program,
    ):
        program.read()
        container.limit(container.used() + plan.workers * EACH_ROOM)
        outcome.figures = {"looks": 0}
        for killed in _kill(program, plan, outcome):
            outcome.figures["kills"] = killed
            outcome.figures["looks"] += 1
            _look(container, program, outcome)
            container.limit(container.used() + plan.workers * EACH_ROOM)
        outside = container.outside_group()
        outcome.check(outside == 0, f"{outside} processes are no clients of the group's server")
        outcome.figures |= {name: getattr(container.region(), name) for name in ("recoveries", "reaped", "timeouts")}
    _judge(outcome)
    return outcome


def kill_natively(plan: KillCampaign) -> TrialOutcome:
    """Kill workers without limits, to measure the waits that the driver causes."""
    outcome = TrialOutcome(f"{plan.kills} kills among {plan.workers}, natively")
    with driver_time.measured(native_env(plan.pipe)) as env, CompiledProgram(env, *plan.program) as program:
        program.read()
        for killed in _kill(program, plan, outcome):
            outcome.figures = {"kills": killed, **program.ask("hold")}
            program.ask("give")
    return outcome


def _kill(program: CompiledProgram, plan: KillCampaign, outcome: TrialOutcome) -> Iterator[int]:
    """Yield the number of kills so far at each look; the last look is at the end."""
    begun = reported = time.monotonic()
    killed = 0
    while killed < plan.kills and time.monotonic() < begun + plan.seconds:
        look = min(plan.kills, killed + -(-plan.kills // plan.looks))
        while killed < look and time.monotonic() < begun + plan.seconds:
            killed += program.ask(f"kill {min(AT_ONCE, look - killed)}")["killed"]
            if time.monotonic() > reported + REPORT_EVERY_S:
                reported = time.monotonic()
                print(f"  {killed} killed after {reported - begun:.0f} s", flush=True)
        yield killed
    outcome.check(killed == plan.kills, f"{killed} kills in {plan.seconds:.0f} s")


def _look(container: LimitedContainer, program: CompiledProgram, outcome: TrialOutcome) -> None:
    """Compare charges while the workers pause: the difference between holding their memory and having freed it."""
    held = program.ask("hold")
    container.limit(START_MIB * MIB)
    charged = charged_to_living(container, outcome)
    program.ask("give")
    charged -= charged_to_living(container, outcome)
    outcome.figures |= {**held, "charged": charged}
    at = f"after {outcome.figures['kills']} kills"
    outcome.check(abs(charged - held["held"]) <= NEAR, f"{at}: {held['held']} bytes held, {charged} charged")


def _judge(outcome: TrialOutcome) -> None:
    wrong, longest = outcome.figures["wrong"], outcome.figures["longest_outside_ns"]
    outcome.check(wrong == 0, f"{wrong} wrong codes or deaths")
    outcome.check(longest < LONGEST_NS, f"waited {longest / 1e6:.1f} ms outside the driver")
