"""Programs of a group in space on one card: natively, under MPS without us, and as members of a group (ADR 174).

All processes of a crowd are started together, and each round measures everything once. A crowd may have programs
beside the group: natively and under MPS they are outside of MPS, and with us they are containers with shares.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from benchmarks.applications import turns_explained
from benchmarks.applications.crowds import (
    WARM_S,
    Crowd,
    CrowdMember,
    RunningCrowd,
    burst,
    crowd_figures,
    medians,
    small,
)
from benchmarks.applications.pairs import BEST_EFFORT, HALF, Side
from benchmarks.applications.turns_explained import ExplainedTurns
from benchmarks.compute.node import BenchmarkNode, Env, gpu_seconds
from benchmarks.compute.scenario import SHOWN, Goal, ScenarioFigure, SkippedError, at_least, at_most, near
from benchmarks.container import GROUP, native_env
from benchmarks.space.daemon import MpsDaemon, control_program, daemons
from vgpu.domain.formats.limits import SpaceMembership

LEAST_SUM = 0.97  # of the sum under MPS without us
MOST_P99 = 1.1  # times the p99 under MPS without us
POINTS = 1.5  # of a hundred: how near a neighbour's share is
SM_PERCENTAGE: Final = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"


@dataclass(frozen=True, slots=True)
class SpaceCrowd:
    """A group in space, and programs beside it.

    Attributes:
        crowd: the group's members.
        beside: the other programs.
        caps: percent of the multiprocessors that a member may use, by its place in the crowd.
    """

    crowd: Crowd
    beside: tuple[CrowdMember, ...] = ()
    caps: Mapping[int, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The crowd's name."""
        return self.crowd.name

    @property
    def programs(self) -> tuple[CrowdMember, ...]:
        """All programs, the members first."""
        return self.crowd.members + self.beside


@dataclass(frozen=True, slots=True)
class SpaceRound:
    """Figures of a crowd that were measured one after the other."""

    native: Mapping[str, float]
    plain: Mapping[str, float]
    ours: Mapping[str, float]


_GRAPH: Final = CrowdMember("decode", "graph", HALF)
_TRAINER: Final = CrowdMember("trainer", "steps", burst(25))
_SMALL_AND_TRAINER: Final = (*small(3, "closed", burst(25)), _TRAINER)
CROWDS: Final = (
    *(SpaceCrowd(Crowd(f"{n} small models, closed", small(n, "closed", burst(100 // n)))) for n in (2, 4, 8, 16)),
    *(SpaceCrowd(Crowd(f"{n} small models, open", small(n, "open", burst(100 // n)))) for n in (4, 8)),
    SpaceCrowd(Crowd("two graph decoders", (_GRAPH, _GRAPH))),
    SpaceCrowd(Crowd("a graph decoder and prefill", (_GRAPH, CrowdMember("prefill", "requests", HALF)))),
    SpaceCrowd(Crowd("3 small models and a trainer", _SMALL_AND_TRAINER)),
    SpaceCrowd(Crowd("3 small models and a trainer of 50 %", _SMALL_AND_TRAINER), caps={3: 50}),
    SpaceCrowd(
        Crowd("3 small models beside fixed 30 and best-effort", small(3, "closed", burst(10))),
        (CrowdMember("trainer", "steps", (30, "fixed")), CrowdMember("trainer", "steps", BEST_EFFORT)),
    ),
)


class SpaceStage:
    """The processes of a crowd, in three ways, until the stack is closed. Raises SkippedError without MPS."""

    def __init__(self, crowd: SpaceCrowd, stack: ExitStack, *, is_explained: bool = False) -> None:
        try:
            control_program()
        except FileNotFoundError as error:
            raise SkippedError(str(error)) from None
        self._crowd = crowd
        start = stack.enter_context(daemons(MpsDaemon))
        node = stack.enter_context(BenchmarkNode(turns_explained.LOG_LEVEL if is_explained else None))
        plain, ours = start().pipe, start().pipe
        places = range(len(crowd.programs))
        self._our_envs = [_our_env(crowd, place, node, ours) for place in places]
        self._native = RunningCrowd(crowd.programs, [native_env() for _ in places], stack)
        self._plain = RunningCrowd(crowd.programs, [_plain_env(crowd, place, plain) for place in places], stack)
        self._ours = RunningCrowd(crowd.programs, self._our_envs, stack)
        for running in (self._native, self._plain, self._ours):
            running.await_ready()
        names = (f"{place}, {_name_of(program)}" for place, program in enumerate(crowd.programs))
        programs = dict(zip(names, self._our_envs, strict=True))
        self._explained = ExplainedTurns(node, programs) if is_explained else None

    def round(self, seconds: float) -> SpaceRound:
        """Measure everything once."""
        alone = self._native.alone(seconds)
        native = space_figures(self._crowd, alone, self._native.together(seconds))
        plain = space_figures(self._crowd, alone, self._plain.together(seconds))
        before = self._charged()
        if self._explained:
            self._explained.begin()
        sides = self._ours.together(seconds)
        ours = space_figures(self._crowd, alone, sides)
        passed = WARM_S + seconds  # both are charged
        self._explain(alone, sides, passed)
        charged = {f"{name}: charged, %": 100 * (now - before[name]) / passed for name, now in self._charged().items()}
        return SpaceRound(native, plain, ours | charged)

    def _explain(self, alone: Mapping[str, Side], sides: Sequence[Side], passed: float) -> None:
        """Print where the time of the round went, and what each program did of what it does alone."""
        if not self._explained:
            return
        for place, (program, side) in enumerate(zip(self._crowd.programs, sides, strict=True)):
            of_alone = 100 * side.rate / alone[program.group].rate
            print(f"explained: program {place}, {_name_of(program)}: did {of_alone:.2f} % of alone", flush=True)
        for line in self._explained.lines(passed):
            print(f"explained: {line}", flush=True)

    def _charged(self) -> dict[str, float]:
        """Return the GPU seconds that were charged so far to the group, and to each program beside it."""
        members = len(self._crowd.crowd.members)
        if not self._crowd.beside:
            return {}
        found = {"group": sum(map(gpu_seconds, self._our_envs[:members]))}
        beside = zip(self._crowd.beside, self._our_envs[members:], strict=True)
        return found | {_name_of(program): gpu_seconds(env) for program, env in beside}


def _plain_env(crowd: SpaceCrowd, place: int, pipe: Path) -> Env:
    if place >= len(crowd.crowd.members):
        return native_env()
    cap = {SM_PERCENTAGE: str(crowd.caps[place])} if place in crowd.caps else {}
    return {**native_env(pipe), **cap}


def _our_env(crowd: SpaceCrowd, place: int, node: BenchmarkNode, pipe: Path) -> Env:
    cores, policy = crowd.programs[place].asked
    if place >= len(crowd.crowd.members):
        return node.container(cores, policy)
    return node.member(cores, SpaceMembership(GROUP.fingerprint, crowd.caps.get(place)), pipe)


def space_figures(crowd: SpaceCrowd, alone: Mapping[str, Side], sides: Sequence[Side]) -> dict[str, float]:
    """Return the figures of the members, and for each program beside them its rate in percent of alone."""
    members = len(crowd.crowd.members)
    found = crowd_figures(crowd.crowd, _of_members(crowd, alone), sides[:members])
    for program, side in zip(crowd.beside, sides[members:], strict=True):
        found[share_of(program)] = 100 * side.rate / alone[program.group].rate
    return found


def _of_members(crowd: SpaceCrowd, alone: Mapping[str, Side]) -> dict[str, Side]:
    return {group: alone[group] for group in crowd.crowd.groups}


def _name_of(program: CrowdMember) -> str:
    cores, policy = program.asked
    return f"beside: {policy} {cores or ''}".rstrip()


def share_of(program: CrowdMember) -> str:
    """Return the name of the figure that says what a program beside a group does, in percent of alone."""
    return f"{_name_of(program)}, %"


def space_goals(crowd: SpaceCrowd, plain: Mapping[str, float]) -> dict[str, Goal]:
    """Return the goals of the figures with us, from those under MPS without us.

    Beside other programs a group takes turns with them, so there only the shares have goals.
    """
    if crowd.beside:
        return {share_of(program): near(program.asked[0], POINTS) for program in crowd.beside if program.asked[0]}
    return {f"{group}: p99 ms": at_most(MOST_P99 * plain[f"{group}: p99 ms"]) for group in crowd.crowd.groups} | {
        "sum over alone": at_least(LEAST_SUM * plain["sum over alone"])
    }


def measure(
    part: str, crowd: SpaceCrowd, seconds: float, rounds: int, *, is_explained: bool = False
) -> Iterator[ScenarioFigure]:
    """Measure a crowd; yield each figure under MPS without us, and as a group. Print each round's time, if wanted."""
    with ExitStack() as stack:
        stage = SpaceStage(crowd, stack, is_explained=is_explained)
        measured = [stage.round(seconds) for _ in range(rounds)]
    native = medians([found.native for found in measured])
    goals = space_goals(crowd, medians([found.plain for found in measured]))
    for name in measured[0].ours:
        ours = [found.ours[name] for found in measured]
        if name in native:
            plain = [found.plain[name] for found in measured]
            yield ScenarioFigure(part, crowd.name, f"MPS alone: {name}", SHOWN, native[name], plain, seconds, 0.0)
        yield ScenarioFigure(part, crowd.name, name, goals.get(name, SHOWN), native.get(name), ours, seconds, 0.0)
