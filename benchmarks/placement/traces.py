"""Nodes and pods of a packing simulation: read from CSV files with the columns of the openb traces, or generated.

The columns: nodes `sn,cpu_milli,memory_mib,gpu,model`; pods `name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec`.
`gpu_spec` is empty or lists models with `|`. Further columns are skipped. No trace is part of this repository:
https://github.com/alibaba/clusterdata/tree/master/cluster-trace-gpu-v2023
"""

import csv
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from vgpu.placement.models import ALL
from vgpu.placement.room import CARD, PodAsk

MAX_CARDS: Final = 64
MODELS: Final = ("A", "B", "C", "D")
MODEL_SHARES: Final = (0.5, 0.3, 0.15, 0.05)
MACHINES: Final = ((8, 96), (8, 128), (8, 96), (4, 64), (2, 64), (2, 96), (1, 32))  # cards, CPUs
SHARES: Final = (50, 100, 110, 150, 200, 220, 250, 300, 330, 400, 460, 500, 600, 700, 810, 900)  # thousandths
CPU_OF_CARD: Final = (4, 8, 12, 16)
CLASSES: Final = 80
MAX_CPU: Final = {8: 90, 4: 60, 2: 60, 1: 30, 0: 60}  # of one pod, by its cards


@dataclass(frozen=True, slots=True)
class TraceNode:
    """A node: `model` is the bit of its cards' model."""

    name: str
    cards: int
    cpu_milli: int
    memory_mib: int
    model: int


@dataclass(frozen=True, slots=True)
class Trace:
    """Machines, classes of pods, and how often each class arrives."""

    machines: Sequence[TraceNode]
    asks: Sequence[PodAsk]
    weights: Any

    @property
    def capacity(self) -> int:
        """Thousandths of cards."""
        return CARD * sum(machine.cards for machine in self.machines)


@dataclass(frozen=True, slots=True)
class Mix:
    """What a generated trace contains.

    Attributes:
        fractional: share of the classes with cards that ask for a part of one.
        several: share of the others that ask for several cards.
        cpu_only: share of the classes without cards.
        cpu: CPU asked for when all cards are, as a share of the machines' CPU.
        choosy: share of the classes that accept some models only.
    """

    fractional: float
    several: float = 0.15
    cpu_only: float = 0.1
    cpu: float = 0.8
    choosy: float = 0.0


MIXES: Final = {
    "whole": Mix(fractional=0.0, several=0.4),
    "half": Mix(fractional=0.5),
    "mostly-shares": Mix(fractional=0.9, several=0.2),
    "shares": Mix(fractional=1.0),
    "cpu-heavy": Mix(fractional=0.7, several=0.1, cpu_only=0.2, cpu=0.97),
    "several-cards": Mix(fractional=0.6, several=0.7),
    "scarce-models": Mix(fractional=0.7, several=0.1, choosy=0.33),
}


def size(ask: PodAsk) -> int:
    """Return the thousandths of cards that a pod asks for."""
    return int(ask.gpus * (CARD if ask.whole else ask.slices))


def generate(mix: Mix, cards: int, seed: int, *, cpu_only: bool = True) -> Trace:
    """Return a made-up trace with at least so many cards."""
    rng = np.random.default_rng(seed)
    machines = _machines(rng, cards)
    classes = [
        _class(rng, mix if cpu_only else Mix(mix.fractional, mix.several, 0.0, mix.cpu, mix.choosy))
        for _ in range(CLASSES)
    ]
    weights = rng.dirichlet(np.full(CLASSES, 0.6))
    return Trace(machines, _with_cpu(rng, classes, weights, machines, mix.cpu), weights)


def read(nodes: Path, pods: Path) -> Trace:
    """Read a trace; each row of the pods is a class of its own unless rows are equal. Raises ValueError."""
    with nodes.open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if _number(nodes, row, "gpu", MAX_CARDS)]
    bits = {model: 1 << n for n, model in enumerate(sorted({row["model"] for row in rows}))}
    machines = [
        TraceNode(
            row["sn"],
            _number(nodes, row, "gpu", MAX_CARDS),
            _number(nodes, row, "cpu_milli"),
            _number(nodes, row, "memory_mib"),
            bits[row["model"]],
        )
        for row in rows
    ]
    with pods.open(newline="", encoding="utf-8") as file:
        asks = [_ask(pods, row, bits) for row in csv.DictReader(file)]
    counts = Counter(asks)
    return Trace(machines, list(counts), np.array(list(counts.values())) / len(asks))


def _number(path: Path, row: dict[str, str], column: str, most: int = 1 << 40) -> int:
    try:
        found = int(float(row.get(column) or 0))
    except ValueError:
        found = -1
    if not 0 <= found <= most:
        raise ValueError(f"{path}: {column}: {row.get(column)!r} is not a number from 0 to {most}")
    return found


def _ask(path: Path, row: dict[str, str], bits: dict[str, int]) -> PodAsk:
    gpus, milli = _number(path, row, "num_gpu", MAX_CARDS), _number(path, row, "gpu_milli", CARD)
    models = sum(bits.get(model, 0) for model in (row.get("gpu_spec") or "").split("|") if model) or ALL
    whole = int(milli == CARD)
    return PodAsk(
        gpus, 0 if whole else milli, 0, whole, _number(path, row, "cpu_milli"), _number(path, row, "memory_mib"), models
    )


def _machines(rng: np.random.Generator, cards: int) -> list[TraceNode]:
    made: list[TraceNode] = []
    while sum(machine.cards for machine in made) < cards:
        count, cpu = MACHINES[rng.integers(len(MACHINES))]
        model = 1 << int(rng.choice(len(MODELS), p=MODEL_SHARES))
        made.append(TraceNode(f"node-{len(made)}", count, cpu * 1000, cpu * int(rng.choice([4, 6, 8])) * 1024, model))
    return made


def _class(rng: np.random.Generator, mix: Mix) -> tuple[int, int, float, int]:
    """Return a class: cards, thousandths of each, CPUs before scaling, models."""
    if rng.random() < mix.cpu_only:
        return 0, 0, float(rng.choice([4, 8, 16, 32])), ALL
    models = int(rng.choice([8, 4, 12, 2])) if rng.random() < mix.choosy else ALL
    if rng.random() < mix.fractional:
        milli = int(rng.choice(SHARES))
        return 1, milli, 2 + milli / CARD * float(rng.choice(CPU_OF_CARD)), models
    cards = int(rng.choice([2, 4, 8], p=[0.5, 0.25, 0.25])) if rng.random() < mix.several else 1
    return cards, CARD, cards * float(rng.choice([4, 6, 8, 11, 15])), models


def _with_cpu(
    rng: np.random.Generator,
    classes: Sequence[tuple[int, int, float, int]],
    weights: Any,
    machines: Sequence[TraceNode],
    cpu: float,
) -> list[PodAsk]:
    """Scale the CPU of the classes, such that pods for all cards ask for a share of the machines' CPU."""
    offered = sum(machine.cpu_milli for machine in machines) / 1000 / sum(machine.cards for machine in machines)
    cards = sum(weight * kind[0] * kind[1] / CARD for kind, weight in zip(classes, weights, strict=True))
    asked = sum(weight * kind[2] for kind, weight in zip(classes, weights, strict=True)) / cards
    scale = cpu * offered / asked
    asks = []
    for gpus, milli, cpus, models in classes:
        scaled = int(1000 * max(1, min(round(cpus * scale * 2) / 2, MAX_CPU[gpus])))
        whole = int(milli == CARD)
        memory = scaled // 1000 * int(rng.choice([2, 4])) * 1024
        asks.append(PodAsk(gpus, 0 if whole else milli, 0, whole, scaled, memory, models))
    return asks
