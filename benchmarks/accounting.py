"""Whether GPU time adds up: the accounts of containers, of other processes and of the card, beside a trace.

    python -m benchmarks.accounting --seconds 120 --json FILE --only TEXT --quick

Each container, and each process without the limiter, computes in PyTorch under a CUPTI trace; without PyTorch, or on
the simulated GPU, it launches kernels of a known duration and counts them. The accounts are kept as the device plugin
keeps them (`vgpu/node/usage/gpu_time.py`). Shown are each container's seconds, the others', and their sum over the
merged trace, that is the time in which any kernel ran; the goal is 1 %. NVML's own figure for the card stands beside
it.
"""

import argparse
import array
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.compute.load import FeederLoad
from benchmarks.compute.node import BenchmarkNode
from benchmarks.container import native_env
from benchmarks.gpu_time.accounts import Accounts
from benchmarks.record import machine, recorder
from benchmarks.record.recorder import ResultRecorder
from benchmarks.record.result import ResultRow, slug

GOAL_PERCENT = 1.0
SPINNING = FeederLoad("kernel", 500)
ANSWER_S = 120.0


@dataclass(frozen=True, slots=True)
class AccountedTenant:
    """A container; without `policy` a process without the limiter."""

    name: str
    policy: str = ""
    cores: int | None = None


CASES: Mapping[str, Sequence[AccountedTenant]] = {
    "one burst": (AccountedTenant("burst", "burst"),),
    "fixed 30 and fixed 60": (AccountedTenant("30", "fixed", 30), AccountedTenant("60", "fixed", 60)),
    "fixed 30 and burst": (AccountedTenant("30", "fixed", 30), AccountedTenant("burst", "burst")),
    "four: 10, 20, burst 30, best-effort": (
        AccountedTenant("10", "fixed", 10),
        AccountedTenant("20", "fixed", 20),
        AccountedTenant("burst 30", "burst", 30),
        AccountedTenant("best-effort", "best-effort"),
    ),
    "fixed 30 and a process without the limiter": (AccountedTenant("30", "fixed", 30), AccountedTenant("without")),
}


def accounts(tenants: Sequence[AccountedTenant]) -> list[str]:
    """Return the names of a case's figures."""
    has_others = any(not tenant.policy for tenant in tenants)
    return [*(tenant.name for tenant in tenants if tenant.policy), *["others"] * has_others, "sum", "card by NVML"]


class Running:
    """One tenant's program."""

    def __init__(self, tenant: AccountedTenant, env: Mapping[str, str], seconds: float, trace: Path | None) -> None:
        self.tenant, self.env, self._trace, self._seconds = tenant, env, trace, seconds
        command = SPINNING.command(seconds)
        if trace is not None:
            command = [sys.executable, "-m", "benchmarks.gpu_time.traced_load", str(seconds), str(trace)]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, env=dict(env), stdin=pipe, stdout=pipe, text=True)

    @property
    def pid(self) -> int:
        """The pid of the program."""
        return self._process.pid

    def answer(self) -> dict[str, Any]:
        """Wait for a line and return its content. Raises RuntimeError."""
        assert self._process.stdout
        line = self._process.stdout.readline()
        found: dict[str, Any] = json.loads(line or '{"result": -1}')
        if found["result"]:
            raise RuntimeError(f"{self.tenant.name}: {found}")
        return found

    def go(self) -> None:
        """Let it begin."""
        assert self._process.stdin
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def end(self) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate()

    def spans(self, answer: Mapping[str, Any]) -> list[tuple[int, int]]:
        """Return the kernels; without a trace one span as long as all counted kernels, scaled to the whole run."""
        if self._trace is None:
            counted = answer["count"] * SPINNING.us * 1000 / answer["ns"]
            return [(0, int(counted * (self._seconds + 1.2) * 1e9))]  # feed.c warms up for 1 s and ends after 0.2 s
        values = array.array("q")
        values.frombytes(self._trace.read_bytes())
        return list(zip(values[::2], values[1::2], strict=True))


def union_s(spans: Iterable[tuple[int, int]]) -> float:
    """Return the seconds that are in any of the spans, which are in ns."""
    total, until = 0, 0
    for begin, end in sorted(spans):
        total += max(0, end - max(begin, until))
        until = max(until, end)
    return total / 1e9


def measure(tenants: Sequence[AccountedTenant], seconds: float, *, is_traced: bool) -> Iterator[ResultRow]:
    """Run the tenants together, and yield the figures."""
    with (
        tempfile.TemporaryDirectory() as folder,
        BenchmarkNode() as node,
        _started(tenants, node, seconds, folder, is_traced) as all_,
    ):
        containers = {running.tenant.name: (running.env, (running.pid,)) for running in all_ if running.tenant.policy}
        with Accounts(containers) as accounts:
            for running in all_:
                running.go()
            answers = [running.answer() for running in all_]
        spans = [running.spans(answer) for running, answer in zip(all_, answers, strict=True)]
        yield from _rows([running.tenant for running in all_], spans, accounts.seconds, is_traced=is_traced)


@contextmanager
def _started(
    tenants: Sequence[AccountedTenant], node: BenchmarkNode, seconds: float, folder: str, is_traced: bool
) -> Iterator[list[Running]]:
    running: list[Running] = []
    try:
        for number, tenant in enumerate(tenants):
            env = node.container(tenant.cores, tenant.policy) if tenant.policy else native_env()
            trace = Path(folder) / str(number) if is_traced else None
            running.append(Running(tenant, env, seconds, trace))
        for started in running:
            started.answer()
        yield running
    finally:
        for started in running:
            started.end()


def _rows(
    tenants: Sequence[AccountedTenant],
    spans: Sequence[list[tuple[int, int]]],
    accounts: Mapping[str, Mapping[str, float]],
    *,
    is_traced: bool,
) -> Iterator[ResultRow]:
    for tenant, kernels in zip(tenants, spans, strict=True):
        if tenant.policy:
            details = {"sampled": accounts["sampled"][tenant.name]}
            yield ResultRow(
                id=tenant.name, value=accounts["gpu"][tenant.name], unit="s", native=union_s(kernels), details=details
            )
    others = [kernels for tenant, kernels in zip(tenants, spans, strict=True) if not tenant.policy]
    yield ResultRow(id="others", value=accounts["card"]["others"], unit="s", native=sum(map(union_s, others)))
    total = sum(accounts["gpu"].values()) + accounts["card"]["others"]
    traced = union_s(span for kernels in spans for span in kernels) if is_traced else sum(map(union_s, spans))
    error = 100 * abs(total - traced) / traced if traced else 100.0
    fault = "" if error <= GOAL_PERCENT else f"{error:.2f} % off the trace"
    yield ResultRow(
        id="sum", value=total, unit="s", native=traced, goal=f"within {GOAL_PERCENT:g} % of the trace", fault=fault
    )
    yield ResultRow(id="card by NVML", value=accounts["card"]["card"], unit="s", native=traced)


def main() -> int:
    """Run the cases, print a line for each figure, and return 1 when a goal was missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=120.0, help="of each case")
    parser.add_argument("--only", default="", help="only cases whose name contains this text")
    parser.add_argument("--json", type=Path, help=recorder.JSON_HELP)
    parser.add_argument("--quick", action="store_true", help="five seconds each, to see whether it runs")
    asked = parser.parse_args()
    is_traced = not machine.is_simulated() and importlib.util.find_spec("torch") is not None
    record = ResultRecorder(
        asked.json, "accounting", ("limiter/src", "limiter/arbiter", "vgpu/node", "benchmarks/gpu_time")
    )
    print(f"{'case':45} {'account':14} {'s':>9} {'trace s':>9}  error", flush=True)
    for name, tenants in CASES.items():
        if asked.only in name:
            for row in measure(tenants, 5.0 if asked.quick else asked.seconds, is_traced=is_traced):
                record.add(_named(name, row))
                print(_line(name, row), flush=True)
    reference = "CUPTI" if is_traced else "counted kernels"
    print(f"{record}; trace: {reference}; {os.cpu_count()} processors; {record.result.faults} goals missed")
    return 1 if record.result.faults else 0


def _named(case: str, row: ResultRow) -> ResultRow:
    return replace(row, id=slug(case, row.id))


def _line(case: str, row: ResultRow) -> str:
    value, trace = row.value or 0.0, row.native or 0.0
    error = f"{100 * (value - trace) / trace:+.2f} %" if trace else "-"
    return f"{case:45} {row.id:14} {value:9.3f} {trace:9.3f}  {error} {row.fault}"


if __name__ == "__main__":
    sys.exit(main())
