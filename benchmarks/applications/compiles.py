"""Programs that compile and tune themselves, natively and in containers with shares, each alone on the card (ADR 170).

Each run is a process of its own with empty caches. Natively there are three runs, because autotuners choose by
measured times.
"""

import os
import statistics
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.applications import choices
from benchmarks.applications.application import Application, together
from benchmarks.applications.card_busy import CardBusy
from benchmarks.applications.choices import Choices
from benchmarks.compute.node import BenchmarkNode, Env, gpu_seconds
from benchmarks.compute.scenario import SHOWN, Goal, ScenarioFigure, at_least, at_most
from benchmarks.compute.waiting_kernels import ASKED
from benchmarks.container import native_env

PART: Final = "compile"
SLOWER: Final = 1.2  # of what the share leaves
LONGEST_S: Final = 120.0
NATIVE_RUNS: Final = 3
BUSY, SLOWEST, UNTUNED = "natively: card busy s", "natively: slowest s", "natively, without autotuning: s"
ALIKE: Final = "choices as natively %"


@dataclass(frozen=True, slots=True)
class CompiledProgram:
    """A program that compiles.

    Attributes:
        name: in the table.
        module: below `benchmarks.applications`.
        kind: of the phase.
        untuned_flags: for XLA_FLAGS: what they save natively is what autotuning takes; empty for no such run.
    """

    name: str
    module: str
    kind: str = "compile"
    untuned_flags: str = ""


PROGRAMS: Final = (
    CompiledProgram("JAX, a multilayer perceptron", "jax_compile", "perceptron", "--xla_gpu_autotune_level=0"),
    CompiledProgram("JAX, a transformer", "jax_compile", "transformer"),
    CompiledProgram("JAX, a convolutional network", "jax_compile", "convolutions"),
    CompiledProgram("torch.compile, max-autotune", "torch_compile"),
    CompiledProgram("Triton autotuning a matrix product", "triton_tune"),
    CompiledProgram("cuDNN choosing among convolutions", "cudnn_tune"),
)


@dataclass(frozen=True, slots=True)
class CompiledRun:
    """One run: seconds, and what the autotuner chose."""

    seconds: float
    chosen: Choices


def figures(program: CompiledProgram) -> Iterator[str]:
    """Yield the names of a program's figures in the order in which they are measured."""
    yield from (BUSY, SLOWEST)
    if program.untuned_flags:
        yield UNTUNED
    for cores, policy in ASKED:
        yield from (f"{policy} {cores}: s", f"{policy} {cores}: charged s")
    yield ALIKE


def measure(program: CompiledProgram) -> Iterator[ScenarioFigure]:
    """Run it in each way, one after the other, and yield the figures. Raises SkippedError without its framework."""
    with ExitStack() as stack:
        natively = [_start(stack, program, native_env()) for _ in range(NATIVE_RUNS)]
        untuned = [_start(stack, program, native_env(), program.untuned_flags)] if program.untuned_flags else []
        envs = [stack.enter_context(BenchmarkNode()).container(cores, policy) for cores, policy in ASKED]
        ours = [_start(stack, program, env) for env in envs]
        for application in (*natively, *untuned, *ours):
            application.await_ready()
        busy: list[float] = []
        runs = [_run_watched(application, program, busy) for application in natively]
        native_s, busy_s = statistics.median(run.seconds for run in runs), statistics.median(busy)
        yield _figure(program, BUSY, busy_s, None)
        yield _figure(program, SLOWEST, max(run.seconds for run in runs), native_s)
        for application in untuned:
            yield _figure(program, UNTUNED, _run(application, program).seconds, native_s)
        chosen: dict[str, Choices] = {}
        for (cores, policy), application, env in zip(ASKED, ours, envs, strict=True):
            name, before = f"{policy} {cores}", gpu_seconds(env)
            run = _run(application, program)
            chosen[name] = run.chosen
            goal = compile_goal(native_s, busy_s, 100 if policy == "burst" else cores)
            yield _figure(program, f"{name}: s", run.seconds, native_s, goal)
            yield _figure(program, f"{name}: charged s", gpu_seconds(env) - before, busy_s)
        yield from _choice_rows(program, [run.chosen for run in runs], chosen)


def compile_goal(native_s: float, busy_s: float, share: int) -> Goal:
    """Return the most seconds at a share in percent, when the card is busy for `busy_s` of them natively.

    No goal where NVML does not say how long it is busy.
    """
    return at_most(SLOWER * max(native_s, busy_s * 100 / share)) if busy_s else SHOWN


def _choice_rows(
    program: CompiledProgram, native: Sequence[Choices], ours: Mapping[str, Choices]
) -> Iterator[ScenarioFigure]:
    """Yield how often containers choose what a native run chose, where native runs do so among each other as often."""
    if not any([*native, *ours.values()]):
        return
    natively = choices.alike_among(native)
    alike = choices.alike_percent(list(ours.values()), native)
    yield _figure(program, ALIKE, alike, natively, at_least(natively))
    print("\n".join(choices.lines(native, ours)), flush=True)


def fresh_caches(folder: Path) -> dict[str, str]:
    """Return the variables by which compilers of CUDA, Triton, PyTorch and JAX find nothing of other runs."""
    names = {"TRITON_CACHE_DIR": "triton", "TORCHINDUCTOR_CACHE_DIR": "inductor", "CUDA_CACHE_PATH": "cuda"}
    return {name: str(folder / cache) for name, cache in names.items()} | {"JAX_ENABLE_COMPILATION_CACHE": "false"}


def xla_flags(folder: Path, more: str) -> dict[str, str]:
    """Return the variables by which XLA writes its choices, and by which `jax_compile` finds them."""
    path = folder / "choices.pbtxt"
    flags = (os.environ.get("XLA_FLAGS", ""), f"--xla_gpu_dump_autotune_results_to={path}", more)
    return {"XLA_FLAGS": " ".join(filter(None, flags)), "BENCH_XLA_CHOICES": str(path)}


def _start(stack: ExitStack, program: CompiledProgram, env: Env, flags: str = "") -> Application:
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="vb-caches-", ignore_cleanup_errors=True)))
    application = Application(program.module, {**env, **fresh_caches(folder), **xla_flags(folder, flags)})
    stack.callback(application.end)
    return application


def _run_watched(application: Application, program: CompiledProgram, busy: list[float]) -> CompiledRun:
    with CardBusy() as card:
        run = _run(application, program)
    busy.append(card.seconds)
    return run


def _run(application: Application, program: CompiledProgram) -> CompiledRun:
    """Let it compile. Its process ends: idle ones would stay on the card with their worker processes."""
    (answer,) = together([(application, program.kind)], LONGEST_S, warm_s=0.0)
    application.end()
    return _run_of(answer)


def _run_of(answer: Mapping[str, Any]) -> CompiledRun:
    if not answer["times_ms"]:
        raise RuntimeError(f"it took more than {LONGEST_S:g} s")
    return CompiledRun(float(answer["times_ms"][0]) / 1e3, answer["choices"])


def _figure(
    program: CompiledProgram, name: str, value: float, native: float | None, goal: Goal = SHOWN
) -> ScenarioFigure:
    seconds = value if name.endswith(" s") else 0.0
    return ScenarioFigure(PART, program.name, name, goal, native, [value], seconds, 0.0)
