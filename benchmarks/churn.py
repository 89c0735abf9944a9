"""The memory of each part in an hour of churn: nothing may grow after the warm-up.

    nice -n 10 python -m benchmarks.churn                      # an hour
    python -m benchmarks.churn --minutes 6 --pods 1500 --quick # shows whether it runs

Starts `python -m vgpu.simulator` with 60 nodes, and creates 15,500 short pods in an hour in several namespaces; each
ends by itself, and is deleted afterwards. Meanwhile the admin REST is asked for usage every 5 s, always with another
period, then for one of the lists, charts and findings in turn, and one client follows the events, as a dashboard does.

A figure is the resident memory of a process in the minute before a mark (the median of a sample every 5 s). There are
six marks, which is one every ten minutes. What a part has at the last one is judged against the second one.
"""

import argparse
import asyncio
import contextlib
import itertools
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import httpx

from benchmarks.record.recorder import ResultRecorder
from benchmarks.record.result import ResultRow, slug
from vgpu.domain import names
from vgpu.simulator.kubelet import RUNS_FOR

SOURCES: Final = ("extender", "webhook", "vgpu/simulator", "vgpu/adapters", "vgpu/placement", "vgpu/domain")
PARTS: Final = {
    "vgpu.simulator": "simulator",
    "extender": "extender",
    "extender.history": "extender history",
    "extender.admin": "admin REST",
    "extender.admin.worker": "explanations and simulations",
    "webhook": "webhook",
}  # by module
LABELS: Final = {
    "extender": "extender",
    "admin-rest": "its admin process",
    "explanations-and-simulations": "its process for explanations and simulations",
    "extender-history": "its process that stores the history",
    "webhook": "webhook",
    "simulator": "simulator: API server, 60 kubelets, scheduler",
}  # by the part of a row's id
MARKS: Final = 6
WARM: Final = 2  # marks: the figure with which the last one is compared
SAMPLE_S: Final = 5.0
USAGE_S: Final = 5.0
KEPT: Final = 150  # pods that exist at a time
RUNS_S: Final = 20
TOGETHER: Final = 16  # requests at a time
READY_S: Final = 120.0
# A part may end with GROWTH times its figure after the warm-up and GROWTH_MIB more: the free pages of an allocator
# differ by as much from minute to minute.
GROWTH: Final = 1.05
GROWTH_MIB: Final = 3.0
TEAMS: Final = 8
ASKED: Final = (256, 1024, 4096, 8192, 16384, 20480)
USAGE: Final = (
    "by=namespace",
    "by=owner&by=day",
    "by=label:team",
    "by=namespace&by=card",
    "by=node",
    "by=model&by=day",
)
VIEWS: Final = (
    "summary",
    "pods?limit=500&sort=-memoryMiB",
    "gpus?limit=500",
    "pending",
    "rightsize?since=1h",
    "history?limit=100",
    "nodes?limit=100",
)

Document = dict[str, Any]


def manifest(number: int) -> Document:
    """Return the pod of a number: names, labels and requests vary, as those of real users do."""
    limits = {names.GPU_MEM: str(ASKED[number % len(ASKED)] + number % 7), names.GPU_CORES: str(1 + number % 30)}
    container = {"name": f"main-{number % 3}", "image": "example/cuda", "resources": {"limits": limits}}
    labels = {"team": f"team-{number % TEAMS}", "run": f"run-{number}"}
    return {
        "metadata": {"name": f"churn-{number}", "labels": labels, "annotations": {RUNS_FOR: str(RUNS_S)}},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }


def pods_path(number: int) -> str:
    """Return the path of the pods in the namespace of a pod."""
    return f"/api/v1/namespaces/team-{number % TEAMS}/pods"


async def churn(api: str, pods: int, seconds: float, counts: defaultdict[str, int]) -> None:
    """Create pods at a steady rate, and delete each when KEPT later ones exist."""
    begun, places = time.monotonic(), asyncio.Semaphore(TOGETHER)

    async def send(method: str, path: str, body: Document | None = None) -> None:
        async with places:
            answer = await http.request(method, path, json=body)
        counts[f"{method} {answer.status_code}"] += 1

    async with httpx.AsyncClient(base_url=api, timeout=60) as http, asyncio.TaskGroup() as group:
        for number in range(pods):
            await asyncio.sleep(max(0.0, begun + number * seconds / pods - time.monotonic()))
            group.create_task(send("POST", pods_path(number), manifest(number)))
            if number >= KEPT:
                old = number - KEPT
                group.create_task(send("DELETE", f"{pods_path(old)}/churn-{old}"))


async def questions(rest: str, counts: defaultdict[str, int]) -> None:
    """Ask for usage every USAGE_S, and for another view, until cancelled."""
    async with httpx.AsyncClient(base_url=rest, timeout=60) as http:
        for number in itertools.count():
            paths = [f"usage?{USAGE[number % len(USAGE)]}&since={60 + number}s", VIEWS[number % len(VIEWS)]]
            if number % 4 == 0:
                paths += await charts(http, number)
            for path in paths:
                try:
                    answer = await http.get(f"/{path}")
                    counts[f"{path.partition('?')[0].partition('/')[0]} {answer.status_code}"] += 1
                except httpx.HTTPError as error:
                    counts[f"questions without an answer: {type(error).__name__}"] += 1
            await asyncio.sleep(USAGE_S)


async def charts(http: httpx.AsyncClient, number: int) -> list[str]:
    """Return the paths of a card's charts, of a pod's charts and of its explanation."""
    cards = (await http.get("/gpus", params={"limit": 500, "fields": "uuid"})).json()["items"]
    pods = (await http.get("/pods", params={"limit": 500, "fields": "namespace,name"})).json()["items"]
    paths = [f"gpus/{cards[number % len(cards)]['uuid']}/series"] if cards else []
    if pods:
        pod = pods[number % len(pods)]
        paths += [f"pods/{pod['namespace']}/{pod['name']}/{view}" for view in ("series", "explain")]
    return paths


async def follow(rest: str, counts: defaultdict[str, int]) -> None:
    """Read the events, as an open dashboard does, and connect again where the stream ends."""
    async with httpx.AsyncClient(base_url=rest, timeout=None) as http:
        while True:
            try:
                async with http.stream("GET", "/events") as stream:
                    async for line in stream.aiter_lines():
                        counts["events"] += line.startswith("data:")
            except httpx.HTTPError:
                counts["event streams that ended"] += 1
            await asyncio.sleep(1)


def processes(parent: int) -> dict[str, int]:
    """Return the process of each part below the simulator, by the name of the part."""
    found = {PARTS["vgpu.simulator"]: parent}
    for pid in below(parent):
        with contextlib.suppress(OSError, ValueError):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
            module = words[words.index("-m") + 1]
            found[PARTS.get(module, module)] = pid
    return found


def below(parent: int) -> Iterator[int]:
    """Yield the processes that a process has started, and those that they have."""
    for task in Path(f"/proc/{parent}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, task.read_text().split()):
                yield child
                yield from below(child)


def resident_mib(pid: int) -> float:
    """Return the resident memory of a process in MiB."""
    found = re.search(r"^VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return int(found[1]) / 1024 if found else 0.0


async def sample(parent: int, samples: list[dict[str, float]]) -> None:
    """Take the memory of each part every SAMPLE_S, until cancelled."""
    while True:
        with contextlib.suppress(OSError):
            samples.append({name: resident_mib(pid) for name, pid in processes(parent).items()})
        await asyncio.sleep(SAMPLE_S)


def at_mark(samples: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the memory of each part in the last minute of the samples."""
    latest = samples[-int(60 / SAMPLE_S) :]
    found = {name for taken in latest for name in taken}
    return {name: statistics.median(taken[name] for taken in latest if name in taken) for name in found}


def rows(marks: Sequence[Mapping[str, float]], minutes: float, counts: Mapping[str, int]) -> Iterator[ResultRow]:
    """Yield a row for each part that lives at every mark: its memory at the last one, beside that after the warm-up."""
    details = {"minutes": [round(minutes * place / MARKS, 1) for place in range(1, len(marks) + 1)], **counts}
    for name in sorted(set(marks[0]).intersection(*marks)):
        yield _row(name, [round(mark[name], 1) for mark in marks], details)


def _row(name: str, figures: list[float], details: Document) -> ResultRow:
    last, warm = figures[-1], figures[min(WARM, len(figures)) - 1]
    has_grown = last > warm * GROWTH + GROWTH_MIB
    return ResultRow(
        id=slug("churn", name),
        value=last,
        unit="MiB",
        native=warm,
        rounds=tuple(figures),
        goal=f"at most {100 * (GROWTH - 1):.0f} % and {GROWTH_MIB:.0f} MiB above the figure after the warm-up",
        fault=f"{last - warm:.1f} MiB more than after the warm-up" if has_grown else "",
        details=details,
    )


def table(found: Sequence[ResultRow]) -> str:
    """Return the rows as lines."""
    minutes = found[0].details["minutes"] if found else []
    lines = ["MiB after minutes".ljust(30) + "".join(f"{minute:>8.1f}" for minute in minutes)]
    lines += [
        row.id.partition(".")[2].ljust(30) + "".join(f"{mib:>8.1f}" for mib in row.rounds) + f"  {row.fault}"
        for row in found
    ]
    return "\n".join(lines)


@contextlib.contextmanager
def simulator(nodes: int) -> Iterator[tuple[int, str, str]]:
    """Run the simulator; yield its process, the API server's URL and the admin REST's."""
    with tempfile.TemporaryDirectory(prefix="vgpu-churn-") as folder:
        output = Path(folder, "output")
        command = [sys.executable, "-m", "vgpu.simulator", "--nodes", str(nodes), "--pods", "0", "--port", "0"]
        with output.open("wb") as file:
            process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT)
        try:
            yield process.pid, *addresses(output, process)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)


def addresses(output: Path, process: subprocess.Popen[bytes]) -> tuple[str, str]:
    """Wait until the simulator names its addresses; return the API server's and the REST's."""
    until = time.monotonic() + READY_S
    while process.poll() is None and time.monotonic() < until:
        said = output.read_text(errors="replace")
        api, admin = (re.search(rf"^{word} +(\S+)", said, re.MULTILINE) for word in ("Kubernetes", "dashboard"))
        if api and admin:
            return api[1], f"{admin[1].rstrip('/')}/api/v1"
        time.sleep(0.1)
    raise SystemExit(f"the simulator has ended, or is not ready:\n{output.read_text(errors='replace')}")


async def measure(
    asked: argparse.Namespace, recorder: ResultRecorder, running: tuple[int, str, str]
) -> list[ResultRow]:
    """Run the churn; keep the rows at each mark, and print them."""
    counts, samples, marks = defaultdict[str, int](int), list[dict[str, float]](), list[dict[str, float]]()
    seconds, found, (pid, api, rest) = asked.minutes * 60, list[ResultRow](), running
    loads = [churn(api, asked.pods, seconds, counts), questions(rest, counts), follow(rest, counts)]
    tasks = [asyncio.create_task(load) for load in (*loads, sample(pid, samples))]
    try:
        for _ in range(MARKS):
            await until_over(seconds / MARKS, tasks)
            marks.append(at_mark(samples))
            found = list(rows(marks, asked.minutes, counts))
            recorder.replace(*found)
            print(table(found), dict(counts), sep="\n", flush=True)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return found


async def until_over(seconds: float, tasks: Sequence[asyncio.Task[None]]) -> None:
    """Wait; raise what a load raised meanwhile."""
    done, _ = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_EXCEPTION)
    for task in done:
        task.result()


def main() -> int:
    """Measure, print the table, and write the result; the status is 1 where a part has grown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--pods", type=int, default=15_500)
    parser.add_argument("--nodes", type=int, default=60)
    parser.add_argument("--quick", action="store_true", help="shows whether it runs; the tables never use the result")
    parser.add_argument("--json", type=Path, help="by default a file in benchmarks/results")
    asked = parser.parse_args()
    recorder = ResultRecorder(asked.json, "churn", SOURCES)
    with simulator(asked.nodes) as running:
        found = asyncio.run(measure(asked, recorder, running))
    return 1 if any(row.fault for row in found) else 0


if __name__ == "__main__":
    sys.exit(main())
