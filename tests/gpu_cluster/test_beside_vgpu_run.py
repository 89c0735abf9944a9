"""Programs in pods cost what they cost by `vgpu run` on the machine itself, without Kubernetes."""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence

import pytest

from cluster.gpu_machine import image
from tests.gpu_cluster.gpu_namespace import PROGRAMS, GpuNamespace, first_card, on_first_card
from tests.gpu_cluster.record import Sightings
from vgpu.domain import names

pytestmark = [pytest.mark.gpu_cluster, pytest.mark.timeout(600)]

ROUNDS = 3
WITHIN = 1.02
SHARES = 20, 60
KERNELS_S = 10
IMPORT_S = 12


def start_local(card: str, cores: int, *command: str) -> subprocess.Popen[str]:
    """Start a program of the folder `programs` by `vgpu run` on one card."""
    limits = ("--gpu-mem", "8Gi", "--gpu-cores", str(cores), "--compute-policy", "fixed")
    program = (str(image.interpreter()), str(PROGRAMS / command[0]), *command[1:])
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": card}
    started = [sys.executable, "-m", "vgpu.cli", "run", *limits, "--", *program]
    return subprocess.Popen(started, stdout=subprocess.PIPE, text=True, env=environment)


def last(process: subprocess.Popen[str]) -> dict[str, float]:
    """Wait for the end of a program, and return its last JSON line."""
    printed, _ = process.communicate(timeout=120)
    assert process.returncode == 0, printed
    result: dict[str, float] = json.loads(printed.splitlines()[-1])
    return result


def create(namespace: GpuNamespace, name: str, cores: int, *command: str) -> None:
    where = on_first_card(namespace) | {names.COMPUTE_POLICY: "fixed"}
    namespace.create_program(name, *command, gpu_mem=8192, gpu_cores=cores, annotations=where)


def test_a_launch_an_allocation_and_a_training_step(namespace: GpuNamespace, seen: Sightings) -> None:
    card = first_card(namespace)["uuid"]
    pods, local = [], []
    for number in range(ROUNDS):
        create(namespace, f"costs-{number}", 100, "costs.py")
        pods.append(namespace.last(f"costs-{number}", 120))
        local.append(last(start_local(card, 100, "costs.py")))
    ratios = {name: middle(pods, name) / middle(local, name) for name in local[0]}
    met = [
        seen.figure(f"pod against vgpu run {name}", ratio, "ratio", f"<= {WITHIN}", is_met=ratio <= WITHIN)
        for name, ratio in ratios.items()
    ]
    assert all(met), (ratios, pods, local)


def middle(results: Sequence[dict[str, float]], name: str) -> float:
    return statistics.median(result[name] for result in results)


def test_shares(namespace: GpuNamespace, seen: Sightings) -> None:
    """The same two programs at the same shares, in pods, then by `vgpu run`: kernels a second."""
    card = first_card(namespace)["uuid"]
    start = str(time.time() + IMPORT_S)
    for cores in SHARES:
        create(namespace, f"pod-{cores}", cores, "burn.py", str(KERNELS_S), start)
    in_pods = {cores: namespace.last(f"pod-{cores}", 120)["rate"] for cores in SHARES}
    start = str(time.time() + IMPORT_S)
    started = {cores: start_local(card, cores, "burn.py", str(KERNELS_S), start) for cores in SHARES}
    for cores, process in started.items():
        ratio = in_pods[cores] / last(process)["rate"]
        is_met = 1 / WITHIN <= ratio <= WITHIN
        assert seen.figure(f"pod against vgpu run share {cores}", ratio, "ratio", f"within {WITHIN}", is_met=is_met)
