"""Whether GPU time adds up: the accounts of containers, of other processes and of the card, beside a trace.

    python -m benchmarks.accounting --seconds 120 --json FILE --only TEXT --quick
    python -m benchmarks.accounting --seconds 20 --only "small models"

Each container, and each process without the limiter, computes in PyTorch under a CUPTI trace; without PyTorch, or on
the simulated GPU, it launches kernels of a known duration and counts them. The accounts are kept as the device plugin
keeps them (`vgpu/node/usage/gpu_time.py`). Shown are each container's seconds, the others', and their sum over the
merged trace, that is the time in which any kernel ran; the goal is 1 %. NVML's own figure for the card stands beside
it.

Small models hold turns jointly, so that their kernels contain each other's time slices: there a container's trace is
without them, and with the pauses between kernels (`gpu_time/kernel_times.py`), its goal is 3 %, and the sum is compared
with that of the traces. Accounts and traces begin when the models have computed for some seconds, and the arbiter has
found out how they share the card best. One of them may report zero: a process of its container writes all the time into
the region that no GPU time was used.
"""

import argparse
import array
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.compute.load import FeederLoad, loops_per_ms
from benchmarks.compute.node import BenchmarkNode
from benchmarks.container import native_env
from benchmarks.gpu_time.accounts import Accounts
from benchmarks.gpu_time.kernel_times import KernelTimes, Span, covered, own_times
from benchmarks.record import machine, recorder
from benchmarks.record.recorder import ResultRecorder
from benchmarks.record.result import ResultRow, slug
from benchmarks.small_programs import requests_load
from limiter import launch, local_state

GOAL_PERCENT = 1.0
OWN_GOAL_PERCENT = 3.0  # of a small model's own kernels
SPINNING = FeederLoad("kernel", 500)
REQUESTS = requests_load.small_program(4)
ANSWER_S = 120.0
WARM_S = 6.0


@dataclass(frozen=True, slots=True)
class AccountedTenant:
    """A container; without `policy` a process without the limiter.

    Attributes:
        name: of its account.
        policy: of its container.
        cores: likewise.
        is_small: whether its program is a small model, in turns that are held jointly.
        reports_zero: whether its region says that it used nothing.
    """

    name: str
    policy: str = ""
    cores: int | None = None
    is_small: bool = False
    reports_zero: bool = False


def small_model(name: str, *, reports_zero: bool = False) -> AccountedTenant:
    """Return a small model with a quarter of the card."""
    return AccountedTenant(name, "burst", 25, is_small=True, reports_zero=reports_zero)


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
    "four small models, burst 25": tuple(small_model(f"model {number}") for number in range(1, 5)),
    "three small models, burst 25, beside one that reports zero": (
        *(small_model(f"model {number}") for number in range(1, 4)),
        small_model("zero", reports_zero=True),
    ),
}


def accounts(tenants: Sequence[AccountedTenant]) -> list[str]:
    """Return the names of a case's figures."""
    has_others = any(not tenant.policy for tenant in tenants)
    return [*(tenant.name for tenant in tenants if tenant.policy), *["others"] * has_others, "sum", "card by NVML"]


class Running:
    """One tenant's program."""

    def __init__(self, tenant: AccountedTenant, env: Mapping[str, str], seconds: float, trace: Path | None) -> None:
        self.tenant, self.env, self._trace, self._seconds = tenant, env, trace, seconds
        command = REQUESTS.command(seconds) if tenant.is_small else SPINNING.command(seconds)
        if trace is not None:
            kind = "small" if tenant.is_small else "products"
            command = [sys.executable, "-m", "benchmarks.gpu_time.traced_load", kind, str(seconds), str(trace)]
        pipe = subprocess.PIPE
        own = dict(env) if trace is not None or not tenant.is_small else {**env, "BENCH_LOOPS": _loops()}
        self._process = subprocess.Popen(command, env=own, stdin=pipe, stdout=pipe, text=True)

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
        self._tell(str(time.monotonic_ns()) if self.tenant.is_small else "")

    def trace(self) -> None:
        """Let a small model under a trace begin with that."""
        self._tell("")

    def _tell(self, line: str) -> None:
        assert self._process.stdin
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def end(self) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate()

    def spans(self, answer: Mapping[str, Any]) -> list[Span]:
        """Return the kernels; without a trace one span as long as all counted kernels, scaled to the whole run."""
        if self._trace is None and self.tenant.is_small:
            return [(0, (answer["warm"] + len(answer["ends_us"])) * REQUESTS.kernels_us * 1000)]
        if self._trace is None:
            counted = answer["count"] * SPINNING.us * 1000 / answer["ns"]
            return [(0, int(counted * (self._seconds + 1.2) * 1e9))]  # feed.c warms up for 1 s and ends after 0.2 s
        values = array.array("q")
        values.frombytes(self._trace.read_bytes())
        return list(zip(values[::2], values[1::2], strict=True))


def _loops() -> str:
    return str(loops_per_ms(FeederLoad("work", 1000)))


def union_s(spans: Iterable[tuple[int, int]]) -> float:
    """Return the seconds that are in any of the spans, which are in ns."""
    return covered(spans) / 1e9


def measure(tenants: Sequence[AccountedTenant], seconds: float, *, is_traced: bool) -> Iterator[ResultRow]:
    """Run the tenants together, and yield the figures."""
    with (
        tempfile.TemporaryDirectory() as folder,
        BenchmarkNode() as node,
        _started(tenants, node, seconds, folder, is_traced) as all_,
    ):
        containers = {running.tenant.name: (running.env, (running.pid,)) for running in all_ if running.tenant.policy}
        has_warm_up = is_traced and all(tenant.is_small for tenant in tenants)
        if has_warm_up:
            _warm_up(all_)
        with Accounts(containers) as accounts:
            for running in all_:
                (running.trace if has_warm_up else running.go)()
            answers = [running.answer() for running in all_]
        spans = [running.spans(answer) for running, answer in zip(all_, answers, strict=True)]
        of_all = [running.tenant for running in all_]
        if all(tenant.is_small for tenant in tenants):
            requests = [answer.get("requests", 0) for answer in answers]
            yield from small_rows(of_all, list(map(own_times, spans, requests)), accounts.seconds)
        else:
            yield from _rows(of_all, spans, accounts.seconds, is_traced=is_traced)


def _warm_up(all_: Sequence[Running]) -> None:
    for running in all_:
        running.go()
    time.sleep(WARM_S)


@contextmanager
def _started(
    tenants: Sequence[AccountedTenant], node: BenchmarkNode, seconds: float, folder: str, is_traced: bool
) -> Iterator[list[Running]]:
    running: list[Running] = []
    hostile: list[subprocess.Popen[bytes]] = []
    try:
        for number, tenant in enumerate(tenants):
            env = node.container(tenant.cores, tenant.policy) if tenant.policy else native_env()
            trace = Path(folder) / str(number) if is_traced else None
            running.append(Running(tenant, env, seconds, trace))
            if tenant.reports_zero:
                hostile.append(_zeroing(Path(env[launch.REGION_ENV])))
        for started in running:
            started.answer()
        yield running
    finally:
        for started in running:
            started.end()
        for client in hostile:
            client.kill()
            client.wait()


def _zeroing(region: Path) -> subprocess.Popen[bytes]:
    """Start a process that lets a container's region say that no GPU time was used."""
    socket = local_state.socket_of(region.parent)
    return subprocess.Popen([sys.executable, "-m", "benchmarks.compute.hostile_client", "zero", str(socket), "1"])


def small_rows(
    tenants: Sequence[AccountedTenant],
    kernels: Sequence[KernelTimes],
    accounts: Mapping[str, Mapping[str, float]],
) -> Iterator[ResultRow]:
    """Yield the figures of small models: each beside its own kernels, the sum beside all of them."""
    for tenant, own in zip(tenants, kernels, strict=True):
        value = accounts["gpu"][tenant.name]
        details = {"sampled": accounts["sampled"][tenant.name], "slices": own.slices_s, "interrupted": own.interrupted}
        details |= {"kernels": own.own_s, "pauses": own.pauses_s}
        fault = "" if tenant.reports_zero else _off(value, own.gpu_s, OWN_GOAL_PERCENT)
        goal = "" if tenant.reports_zero else f"within {OWN_GOAL_PERCENT:g} % of the trace"
        yield ResultRow(
            id=tenant.name, value=value, unit="s", native=own.gpu_s, goal=goal, fault=fault, details=details
        )
    total, traced = sum(accounts["gpu"].values()), sum(own.gpu_s for own in kernels)
    yield _sum_row(total, traced)
    yield ResultRow(id="card by NVML", value=accounts["card"]["card"], unit="s", native=traced)


def _off(value: float, traced: float, most: float) -> str:
    """Return what is said about a figure that is further from the trace than `most` percent."""
    error = 100 * abs(value - traced) / traced if traced else 100.0
    return "" if error <= most else f"{error:.2f} % off the trace"


def _sum_row(total: float, traced: float) -> ResultRow:
    goal = f"within {GOAL_PERCENT:g} % of the trace"
    fault = _off(total, traced, GOAL_PERCENT)
    return ResultRow(id="sum", value=total, unit="s", native=traced, goal=goal, fault=fault)


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
    yield _sum_row(total, traced)
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
