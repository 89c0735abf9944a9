"""What pods on real cards show."""

from typing import Final

from benchmarks.record.result import ResultRow, slug
from benchmarks.report.tables.report_table import HEADLINES, Line, ReportTable, number


def sighting(row: ResultRow) -> str:
    """Return the cell of a test of `make gpu-e2e`, or of a figure that it measured."""
    if row.unit == "faults":
        return "**failed**" if row.fault else "passed"
    text = number(row.value, {"%": 1, "s": 2}.get(row.unit, 3))
    return f"**{text}**" if row.fault else text


_FRAMEWORK_LIMITS: Final = ("torch", "cupy", "jax")
_IN_PODS: Final = (
    ("placed, shown its share by CUDA, NVML and nvidia-smi, and its slices freed again", ["the road of a pod"]),
    (
        "PyTorch, CuPy and JAX are refused at 8 GiB, and NVML outside counts no more for them",
        [f"a framework gets its limit and no more {name}" for name in _FRAMEWORK_LIMITS],
    ),
    ("fixed 20 and 60 side by side: % of one alone, by kernels", ["share 20 of 2", "share 60 of 2"]),
    ("fixed 10, 20, 25 and 35 side by side", [f"share {cores} of 4" for cores in (10, 20, 25, 35)]),
    ("burst 70 beside best-effort: % of one alone", ["burst and best-effort burst", "burst and best-effort rest"]),
    ("GPU seconds in the metrics over the kernels' own, two minutes of fixed 30", ["accounted"]),
    (
        "metrics of memory against NVML; an idle pod gives its card back; the two minutes above",
        ["two minutes are accounted and an idle pod gives its card back"],
    ),
    ("`vgpu set` changes the limit of a running program", ["a limit changes while a program runs"]),
    ("`vgpu hold --target 50`: % busy, by NVML", ["hold 50"]),
    ("`vgpu diagnose --live` names the share that holds a program back", ["diagnose of a running pod"]),
    ("a process on the card without a share is found", ["a process on the card without a share is found"]),
    (
        "device plugin, extender, webhook, containerd and kubelet restarted: a running pod keeps fixed 40",
        ["parts restart under load and a pod keeps its share"],
    ),
    ("50 random kills: nothing stays on the card", ["pods are killed at random and nothing of them stays"]),
    (
        "time in a pod over time by `vgpu run`: launch, allocation, training step",
        [f"pod against vgpu run {name}" for name in ("launch", "allocation", "step")],
    ),
    (
        "kernels in pods over those by `vgpu run`, fixed 20 and 60",
        [f"pod against vgpu run share {c}" for c in (20, 60)],
    ),
    (
        "s from the pod's creation to its process, to cuInit, to the first cuMemAlloc",
        [f"first allocation {step}" for step in ("process", "cuinit", "cumemalloc")],
    ),
    ("s of it that a pod without a share does not need", ["first allocation ours"]),
    ("two cards: a whole card beside shares; a pod over both", ["a whole card beside shares", "a pod over both cards"]),
    ("two cards: NCCL in one pod, and in two", ["nccl in one pod over two cards", "nccl in two pods"]),
)
IN_PODS: Final = ReportTable(
    "in-pods",
    HEADLINES,
    "in pods on real cards",
    {"seen": sighting},
    tuple(Line(label, tuple(slug("gpu_cluster", name) for name in names)) for label, names in _IN_PODS),
)
