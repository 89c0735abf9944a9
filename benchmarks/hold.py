"""Whether `vgpu hold` holds a card at its target, and gets out of the way of a program that computes.

    python -m benchmarks.hold targets --target 50 30 70 --seconds 300 --gpu 0 --json FILE
    python -m benchmarks.hold beside --seconds 20 --gpu 0 --json FILE

targets: the mean of NVML's utilization after the first minute (a fifth of the time where that is shorter), the time
until it stays near the target, the memory, and how often the load slept although nobody else used the card.
beside: matrix products of PyTorch alone and beside a load of 60 %: natively, and both as tenants of the arbiter, the
load without a guarantee. The rate is compared with that alone; the load's log says when it slept and came back.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks.record import recorder
from benchmarks.record.recorder import ResultRecorder
from benchmarks.record.result import ResultRow, slug
from benchmarks.started_program import StartedProgram

VGPU = (sys.executable, "-m", "vgpu.cli")
EVERY_S, FIRST_S, NEAR = 0.5, 60.0, 3.0
WINDOW = 20  # samples of the mean that must stay near the target
SETTLED_S, RETURN_S = 25.0, 16.0
SOURCES = ("vgpu/workloads/hold",)
TENANT = (*VGPU, "run", "--gpu-mem", "60Gi", "--")
BEST_EFFORT = (*VGPU, "run", "--compute-policy", "best-effort", "--gpu-mem", "2Gi", "--")


class NvmlCard:
    """One card of NVML's."""

    def __init__(self, index: int) -> None:
        import pynvml  # noqa: PLC0415 - needs a driver

        self._nvml: Any = pynvml
        pynvml.nvmlInit()
        self._handle = pynvml.nvmlDeviceGetHandleByIndex(index)

    def utilization(self) -> int:
        """Return NVML's utilization in percent."""
        return int(self._nvml.nvmlDeviceGetUtilizationRates(self._handle).gpu)

    def process_mib(self) -> float:
        """Return the memory of the processes that compute on the card, in MiB."""
        listed = self._nvml.nvmlDeviceGetComputeRunningProcesses(self._handle)
        return sum(process.usedGpuMemory or 0 for process in listed) / 2**20


def entries(log: Path) -> list[dict[str, Any]]:
    """Return the log's decisions."""
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


@contextmanager
def holding(target: int, gpu: int, log: Path, before: Sequence[str] = ()) -> Iterator[subprocess.Popen[bytes]]:
    """Hold a card until the context is left."""
    command = (*before, *VGPU, "hold", "--target", str(target), "--gpu", str(gpu), "-o", "json", "--log", str(log))
    process = subprocess.Popen(command)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def targets(asked: Sequence[int], gpu: int, seconds: float) -> Iterator[ResultRow]:
    """Hold each target, and yield what was measured."""
    card = NvmlCard(gpu)
    for target in asked:
        with tempfile.TemporaryDirectory() as folder, holding(target, gpu, Path(folder) / "log") as load:
            samples, memory = _sampled(card, load, seconds)
            log = entries(Path(folder) / "log")
        yield from _target_rows(target, seconds, samples, memory, log)


def _sampled(card: NvmlCard, load: subprocess.Popen[bytes], seconds: float) -> tuple[list[int], float]:
    """Return NVML's utilization and the most memory while the load runs. Raises RuntimeError where it has ended."""
    samples, memory, until = [], 0.0, time.monotonic() + seconds
    while time.monotonic() < until:
        if load.poll() is not None:
            raise RuntimeError(f"vgpu hold ended with exit code {load.returncode}")
        samples.append(card.utilization())
        memory = max(memory, card.process_mib())
        time.sleep(EVERY_S)
    return samples, memory


def _target_rows(
    target: int, seconds: float, samples: Sequence[int], memory: float, log: Sequence[dict[str, Any]]
) -> Iterator[ResultRow]:
    settled = samples[int(min(FIRST_S, seconds / 5) / EVERY_S) :]
    mean = sum(settled) / len(settled)
    fault = "" if abs(mean - target) <= NEAR else f"{mean - target:+.1f} points"
    name = f"target {target}"
    spread = {"lowest": min(settled), "highest": max(settled), "samples": len(settled)}
    yield ResultRow(
        id=slug(name, "mean"), value=mean, unit="%", goal=f"within {NEAR:g} points", fault=fault, details=spread
    )
    yield ResultRow(id=slug(name, "settling"), value=settling_s(samples, target), unit="s")
    yield ResultRow(id=slug(name, "memory"), value=memory, unit="MiB")
    sleeps = sum(entry["message"].startswith("Sleep") for entry in log)
    yield ResultRow(
        id=slug(name, "sleeps"), value=sleeps, unit="times", goal="0", fault="slept alone" if sleeps else ""
    )


def settling_s(samples: Sequence[int], target: int) -> float | None:
    """Return after how many seconds the mean over ten seconds stays near the target; None if it does not."""
    means = [sum(samples[end - WINDOW : end]) / WINDOW for end in range(WINDOW, len(samples) + 1)]
    far = [place for place, mean in enumerate(means) if abs(mean - target) > NEAR]
    first = far[-1] + 1 if far else 0
    return first * EVERY_S if first < len(means) else None


def beside(gpu: int, seconds: float) -> Iterator[ResultRow]:
    """Yield the rates of a program alone and beside the load, and when the load slept and came back."""
    for name, program, load in (("native", (), ()), ("arbiter", TENANT, BEST_EFFORT)):
        alone, _, _ = _job(program, gpu, seconds)
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / "log"
            with holding(60, gpu, log, load):
                time.sleep(SETTLED_S)
                rate, begun, ended = _job(program, gpu, seconds)
                time.sleep(RETURN_S)
            yield from _beside_rows(name, rate, alone, begun, ended, entries(log))


def _beside_rows(
    name: str, rate: float, alone: float, begun: float, ended: float, log: Sequence[dict[str, Any]]
) -> Iterator[ResultRow]:
    part = 100 * rate / alone
    fault = "" if part >= 98 else f"{part:.1f} %"  # noqa: PLR2004 - the goal
    yield ResultRow(id=slug(name, "rate"), value=part, unit="% of alone", goal="98 %", fault=fault)
    events = [(datetime.fromisoformat(entry["time"]).timestamp(), entry["message"]) for entry in log]
    slept = [at - begun for at, text in events if text.startswith("Sleep") and at >= begun - SETTLED_S / 2]
    back = [at - ended for at, text in events if text.startswith("Idle") and at > ended]
    told = {"log": [f"{at - begun:+.2f} {text}"[:90] for at, text in events][-40:]}
    yield ResultRow(id=slug(name, "asleep"), value=min(slept, default=None), unit="s", goal="1 s", details=told)
    yield ResultRow(id=slug(name, "back"), value=min(back, default=None), unit="s", goal="5 to 15 s")


def _job(before: Sequence[str], gpu: int, seconds: float) -> tuple[float, float, float]:
    """Run matrix products; return steps a second, and when it began to compute and when it ended (UNIX time)."""
    with StartedProgram("power", gpu, seconds, before) as program:
        begun = program.begin()
        rate, ended = program.end()
    return rate, begun, ended


def main() -> int:
    """Measure, print a line for each figure, and return 1 when a goal was missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=("targets", "beside"))
    parser.add_argument("--target", type=int, nargs="+", default=[50, 30, 70])
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--gpu", type=int, default=0)
    parser.add_argument("--json", type=Path, help=recorder.JSON_HELP)
    asked = parser.parse_args()
    record = ResultRecorder(asked.json, "hold", SOURCES)
    rows = (
        targets(asked.target, asked.gpu, asked.seconds) if asked.part == "targets" else beside(asked.gpu, asked.seconds)
    )
    for row in rows:
        record.add(row)
        value = "-" if row.value is None else f"{row.value:.2f}"
        print(f"{row.id:20} {value:>9} {row.unit:12} {row.goal:18} {row.fault}", flush=True)
        for line in row.details.get("log", ()):
            print(f"    {line}", flush=True)
    print(record, flush=True)
    return 1 if record.result.faults else 0


if __name__ == "__main__":
    sys.exit(main())
