"""A compilation in JAX, natively and in containers with shares, each alone on the card (ADR 170)."""

import importlib
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Final

from benchmarks.applications.application import Application, together
from benchmarks.compute.node import BenchmarkNode, Env, gpu_seconds
from benchmarks.compute.scenario import SHOWN, Goal, ScenarioFigure, at_most
from benchmarks.compute.waiting_kernels import ASKED
from benchmarks.container import native_env

SLOWER: Final = 1.2  # of what the share leaves
LONGEST_S: Final = 90.0
LATE_SAMPLES_S: Final = 1.0
NAME: Final = "a small training step"
WITHOUT_AUTOTUNING: Final = "--xla_gpu_autotune_level=0"  # in XLA_FLAGS: what it saves is what autotuning takes


def measure(part: str) -> Iterator[ScenarioFigure]:
    """Compile once in each way, one after the other, and yield the figures. Raises SkippedError without JAX."""
    with ExitStack() as stack:
        native = _start(stack, native_env())
        flags = f"{os.environ.get('XLA_FLAGS', '')} {WITHOUT_AUTOTUNING}"
        untuned = _start(stack, {**native_env(), "XLA_FLAGS": flags})
        ours = []
        for cores, policy in ASKED:
            env = stack.enter_context(BenchmarkNode()).container(cores, policy)
            ours.append((_start(stack, env), env))
        for application in (native, untuned, *(application for application, _ in ours)):
            application.await_ready()
        since_us = time.time_ns() // 1000
        native_s = _compile(native)
        busy_s = busy_seconds(since_us)
        yield _figure(part, "natively: card busy s", busy_s, None)
        yield _figure(part, "natively, without autotuning: s", _compile(untuned), native_s)
        for (cores, policy), (application, env) in zip(ASKED, ours, strict=True):
            before = gpu_seconds(env)
            taken = _compile(application)
            goal = compile_goal(native_s, busy_s, 100 if policy == "burst" else cores)
            yield _figure(part, f"{policy} {cores}: s", taken, native_s, goal)
            yield _figure(part, f"{policy} {cores}: charged s", gpu_seconds(env) - before, busy_s)


def compile_goal(native_s: float, busy_s: float, share: int) -> Goal:
    """Return the most seconds at a share in percent, when the card is busy for `busy_s` of them natively."""
    return at_most(SLOWER * max(native_s, busy_s * 100 / share))


def _start(stack: ExitStack, env: Env) -> Application:
    application = Application("jax_compile", env)
    stack.callback(application.end)
    return application


def _compile(application: Application) -> float:
    (answer,) = together([(application, "compile")], LONGEST_S, warm_s=0.0)
    if not answer["times_ms"]:
        raise RuntimeError(f"the compilation took more than {LONGEST_S:g} s")
    return float(answer["times_ms"][0]) / 1e3


def _figure(part: str, name: str, value: float, native: float | None, goal: Goal = SHOWN) -> ScenarioFigure:
    return ScenarioFigure(part, NAME, name, goal, native, [value], value, 0.0)


def busy_seconds(since_us: int) -> float:
    """Return for how long the first card had work since a time (us since 1970), by NVML's samples; 0 without them."""
    nvml: Any = importlib.import_module("pynvml")
    time.sleep(LATE_SAMPLES_S)
    nvml.nvmlInit()
    card = nvml.nvmlDeviceGetHandleByIndex(0)
    try:
        _, samples = nvml.nvmlDeviceGetSamples(card, nvml.NVML_GPU_UTILIZATION_SAMPLES, since_us)
    except nvml.NVMLError:
        return 0.0
    return sampled_seconds(since_us, [(int(sample.timeStamp), int(sample.sampleValue.uiVal)) for sample in samples])


def sampled_seconds(since_us: int, samples: list[tuple[int, int]]) -> float:
    """Return the seconds of work of samples: time in us, and percent of the time since the sample before."""
    total, last_us = 0.0, since_us
    for at_us, percent in sorted(samples):
        if at_us > last_us:
            total += (at_us - last_us) / 1e6 * percent / 100
            last_us = at_us
    return total
