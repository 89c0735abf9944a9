"""Several programs on one card: each kind alone, all natively, and all in containers with shares.

All processes of a crowd are started together. Each round measures everything once, and compares only figures of the
round: the host's speed, on which a program with many launches depends, changes within minutes.
"""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

from benchmarks.applications.application import Application, together
from benchmarks.applications.pairs import BEST_EFFORT, BURST_40, HALF, Asked, Side
from benchmarks.compute.node import BenchmarkNode, Env
from benchmarks.compute.scenario import SHOWN, Goal, ScenarioFigure, at_least, at_most
from benchmarks.container import native_env

LEAST_SUM = 0.99  # of the native sum
EQUAL = 1.01  # times the native time: rounds of the same programs differ by as much
MOST_P99 = 1.2  # of alone, for a program that uses less than half of its fixed share
P50_FIXED = 1.05  # likewise
FIXED: Final = "fixed"

# The arbiter finds out within two seconds how the programs of a crowd share the card best; all begin at the same
# moment here.
WARM_S = 4.0


@dataclass(frozen=True, slots=True)
class CrowdMember:
    """A program of a crowd: module below `benchmarks.applications`, kind, and what its container asks for."""

    module: str
    kind: str
    asked: Asked

    @property
    def group(self) -> str:
        """The name of members that do the same: `small_model open` for `open 3`."""
        return f"{self.module} {self.kind.partition(' ')[0]}"

    @property
    def is_guaranteed(self) -> bool:
        """Whether a share of the card's time is promised."""
        return self.asked[0] is not None


@dataclass(frozen=True, slots=True)
class Crowd:
    """Programs that run at the same moment."""

    name: str
    members: tuple[CrowdMember, ...]

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups of the members, in their order."""
        return tuple(dict.fromkeys(member.group for member in self.members))

    @property
    def is_fixed(self) -> bool:
        """Whether the members have fixed shares, so that they are compared with alone and not with each other."""
        return self.members[0].asked[1] == FIXED


@dataclass(frozen=True, slots=True)
class CrowdRound:
    """Figures of a crowd that were measured one after the other."""

    native: Mapping[str, float]
    ours: Mapping[str, float]


def small(count: int, kind: str, asked: Asked) -> tuple[CrowdMember, ...]:
    """Return small models; those of the kind `open` have seeds of their own."""
    kinds = [f"{kind} {number}" if kind == "open" else kind for number in range(count)]
    return tuple(CrowdMember("small_model", kind, asked) for kind in kinds)


def burst(cores: int) -> Asked:
    """Return a guaranteed share that may use idle time."""
    return cores, "burst"


_TRAINER: Final = CrowdMember("trainer", "steps", BEST_EFFORT)
_GRAPH: Final = CrowdMember("decode", "graph", HALF)
CLOSED: Final = tuple(
    Crowd(f"{count} small models, closed, burst {100 // count}", small(count, "closed", burst(100 // count)))
    for count in (2, 4, 8, 16)
)
OPEN: Final = (
    Crowd("8 small models, open, burst 12", small(8, "open", burst(12))),
    Crowd("4 small models, open, burst 12, beside a trainer", (*small(4, "open", burst(12)), _TRAINER)),
)
DECODERS: Final = (
    Crowd("two graph decoders, burst 50", (_GRAPH, _GRAPH)),
    Crowd("a graph decoder beside prefill, burst 50", (_GRAPH, CrowdMember("prefill", "requests", HALF))),
    Crowd("eager decode, burst 40, beside a trainer", (CrowdMember("decode", "eager", BURST_40), _TRAINER)),
    Crowd("requests, burst 40, beside a trainer", (CrowdMember("decode", "requests", BURST_40), _TRAINER)),
)
FIXED_SHARES: Final = tuple(
    Crowd(f"{count} small model{'s' if count > 1 else ''}, open, fixed {cores}", small(count, "open", (cores, FIXED)))
    for count, cores in ((1, 12), (4, 12), (8, 12), (4, 20))
)
PARTS: Final[dict[str, tuple[Crowd, ...]]] = {
    "closed": CLOSED,
    "open": OPEN,
    "decoders": DECODERS,
    "fixed": FIXED_SHARES,
}


class RunningCrowd:
    """The processes of a crowd in one way, one for each member, until the stack is closed."""

    def __init__(self, members: Sequence[CrowdMember], envs: Sequence[Env], stack: ExitStack) -> None:
        self._work: list[tuple[Application, str]] = []
        self._groups = [member.group for member in members]
        for member, env in zip(members, envs, strict=True):
            application = Application(member.module, env)
            stack.callback(application.end)
            self._work.append((application, member.kind))

    def await_ready(self) -> None:
        """Wait until all of them are set up."""
        for application, _ in self._work:
            application.await_ready()

    def alone(self, seconds: float) -> dict[str, Side]:
        """Measure one member of each group, one after the other."""
        first = dict(zip(self._groups, self._work, strict=True))
        return {group: Side.of(together([work], seconds)[0]) for group, work in first.items()}

    def together(self, seconds: float) -> list[Side]:
        """Measure all members at the same moment."""
        return [Side.of(answer) for answer in together(self._work, seconds, warm_s=WARM_S)]


class CrowdStage:
    """The processes of a crowd, natively and in containers, until the stack is closed."""

    def __init__(self, crowd: Crowd, stack: ExitStack) -> None:
        self._crowd = crowd
        node = stack.enter_context(BenchmarkNode())
        self._native = RunningCrowd(crowd.members, [native_env()] * len(crowd.members), stack)
        ours = [node.container(*member.asked) for member in crowd.members]
        self._ours = RunningCrowd(crowd.members, ours, stack)
        for running in (self._native, self._ours):
            running.await_ready()

    def round(self, seconds: float) -> CrowdRound:
        """Measure everything once."""
        alone = self._native.alone(seconds)
        return CrowdRound(
            crowd_figures(self._crowd, alone, self._native.together(seconds)),
            crowd_figures(self._crowd, alone, self._ours.together(seconds)),
        )


def crowd_figures(crowd: Crowd, alone: Mapping[str, Side], sides: Sequence[Side]) -> dict[str, float]:
    """Return the sum of all rates, each over alone, and for each group the rate in all, p50 and p99 in ms.

    p50 is the median of the members' medians, p99 the highest of the members'.
    """
    every = list(zip(crowd.members, sides, strict=True))
    found = {"sum over alone": sum(side.rate / alone[member.group].rate for member, side in every)}
    for group, single in alone.items():
        of_group = [side for member, side in every if member.group == group]
        found[f"{group}: each s"] = sum(side.rate for side in of_group)
        found[f"{group}: p50 ms"] = statistics.median(side.p50 for side in of_group)
        found[f"{group}: p99 ms"] = max(side.p99 for side in of_group)
        found[f"{group}: p50 over alone"] = found[f"{group}: p50 ms"] / single.p50
        found[f"{group}: p99 over alone"] = found[f"{group}: p99 ms"] / single.p99
    return found


def crowd_goals(crowd: Crowd, native: Mapping[str, float]) -> dict[str, Goal]:
    """Return the goals of a crowd's figures, from the native ones."""
    groups = {member.group for member in crowd.members if member.is_guaranteed}
    if crowd.is_fixed:
        return {f"{group}: p50 over alone": at_most(P50_FIXED) for group in groups} | {
            f"{group}: p99 over alone": at_most(MOST_P99) for group in groups
        }
    times = [f"{group}: {cut} ms" for group in groups for cut in ("p50", "p99")]
    return {name: at_most(EQUAL * native[name]) for name in times} | {
        "sum over alone": at_least(LEAST_SUM * native["sum over alone"])
    }


def medians(rounds: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the median of each figure."""
    return {name: statistics.median(found[name] for found in rounds) for name in rounds[0]}


def measure(part: str, crowd: Crowd, seconds: float, rounds: int) -> Iterator[ScenarioFigure]:
    """Measure a crowd and yield its figures."""
    with ExitStack() as stack:
        stage = CrowdStage(crowd, stack)
        measured = [stage.round(seconds) for _ in range(rounds)]
    native = medians([found.native for found in measured])
    goals = crowd_goals(crowd, native)
    for name in measured[0].ours:
        values = [found.ours[name] for found in measured]
        yield ScenarioFigure(part, crowd.name, name, goals.get(name, SHOWN), native[name], values, seconds, 0.0)
