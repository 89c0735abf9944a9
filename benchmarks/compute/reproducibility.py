"""Whether PyTorch does the same with a share as without: bits, what its profiler sees, and ranks that wait."""

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.compute.node import LaunchPlace
from benchmarks.compute.scenario import SHOWN, Figures, Scenario, SkippedError, at_least
from benchmarks.container import native_env

TRAINING = ("benchmarks.compute.torch_train",)
PROFILE = ("benchmarks.compute.torch_profile",)
RANKS = ("benchmarks.compute.torch_ranks",)
REPEATABLE = {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
TIMEOUT_S = 90
WORLD = 2
CORES = 50


def same() -> list[Scenario]:
    """Training in one container, and profiled; two ranks in two containers, on one card and on two."""
    equal, finish = {"equal": at_least(1), "step ms": SHOWN}, {"ranks that are right": at_least(WORLD)}
    profiled = {"equal": at_least(1), "kernels and copies": SHOWN}
    return [
        Scenario("same", f"bits of a training at fixed {CORES} %", equal, _training),
        Scenario("same", f"what the profiler sees at fixed {CORES} %", profiled, _profile),
        Scenario("same", "two gloo ranks on one card", finish, lambda place: _ranks(place, "gloo"), has_native=False),
        Scenario("same", "two NCCL ranks on two cards", finish, lambda place: _ranks(place, "nccl"), has_native=False),
    ]


def _training(place: LaunchPlace) -> Figures:
    (first,), (second,) = (last_lines([TRAINING], [env]) for env in (place.container(CORES), native_env()))
    return {"equal": float(first["digest"] == second["digest"]), "step ms": first["step_ms"]}


def _profile(place: LaunchPlace) -> Figures:
    (ours,), (native,) = (last_lines([PROFILE], [env]) for env in (place.container(CORES), native_env()))
    return {"equal": float(ours["seen"] == native["seen"]), "kernels and copies": sum(ours["seen"].values())}


def _ranks(place: LaunchPlace, backend: str) -> Figures:
    envs = [
        {**place.container(CORES), "RANK": str(rank), "WORLD_SIZE": str(WORLD), "MASTER_ADDR": "127.0.0.1"}
        for rank in range(WORLD)
    ]
    ranks = last_lines([(*RANKS, backend)] * WORLD, envs)
    if any("skipped" in rank for rank in ranks):
        raise SkippedError(ranks[0]["skipped"])
    return {"ranks that are right": float(sum(rank["right"] for rank in ranks))}


def last_lines(modules: Sequence[Sequence[str]], envs: Sequence[Mapping[str, str]]) -> list[dict[str, Any]]:
    """Run modules at the same time and return the JSON of the last line of each.

    Raises SkippedError without PyTorch or a real card.
    """
    if "SIMGPU_STATE" in os.environ or not importlib.util.find_spec("torch"):
        raise SkippedError("needs PyTorch and a real card")
    processes = [
        subprocess.Popen([sys.executable, "-m", *module], env={**env, **REPEATABLE}, stdout=subprocess.PIPE, text=True)
        for module, env in zip(modules, envs, strict=True)
    ]
    try:
        return [json.loads(process.communicate(timeout=TIMEOUT_S)[0].splitlines()[-1]) for process in processes]
    except (subprocess.TimeoutExpired, IndexError) as error:
        raise RuntimeError(f"{modules[0]}: {error}") from error
    finally:
        for process in processes:
            process.kill()
            process.wait()
