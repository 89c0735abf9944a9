"""Filter and prioritize over HTTP on a large cluster: time of the whole reply, memory, start, cost of a watch event.

The extender is a process of its own; its lists and watches are served over HTTP by the simulator's API server. Between
two calls a pod is bound through the API server, as in a cluster that schedules: the extender sees one changed node.

    python -m benchmarks.filter_latency --nodes 1000 --gpus 8 --pods 32000 --names 1000
"""

import argparse
import asyncio
import itertools
import json
import os
import statistics
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.calls import populated, verb_caller
from benchmarks.calls.populated import Extender
from benchmarks.record import recorder
from benchmarks.record.recorder import ResultRecorder
from benchmarks.record.result import ResultRow, slug
from vgpu.simulator.api.cluster import InMemoryCluster

Document = dict[str, Any]
Body = Callable[[int], bytes]

WARM_UP: Final = 20  # calls
EVENTS: Final = 2_000
DRAIN_S: Final = 2.0
SETTLED_S: Final = 7.0  # after hundreds of deletions at once: the extender looks at their nodes again after 5 s
TOO_MUCH_MIB: Final = 80_000  # more than is free on a card that holds a pod
PEERS: Final[Mapping[tuple[int, int], str]] = {  # ms, by nodes and pods
    (10, 0): "HAMi 14",
    (100, 3_200): "HAMi 318",
    (1_000, 32_000): "HAMi 1,940",
}


@dataclass(frozen=True, slots=True)
class CallSeries:
    """One series of calls: a label, the verb, and the body of call N."""

    label: str
    verb: str
    body: Body


def cases(nodes: int, count: int, *, is_used: bool = True) -> Iterator[CallSeries]:
    """Yield the series for the first `count` names of a cluster, in which every card is used, or none."""
    names = json.dumps([populated.node_name(number) for number in range(min(count, nodes))], separators=(",", ":"))

    def body(memory_mib: Callable[[int], int], gpus: int = 1) -> Body:
        def made(number: int) -> bytes:
            pod = populated.pod(f"new-{number:06}", "default", memory_mib(number), gpus)
            pod["metadata"]["uid"] = f"20000000-0000-4000-8000-{number:012x}"
            return f'{{"Pod":{json.dumps(pod)},"Nodes":null,"NodeNames":{names}}}'.encode()

        return made

    yield CallSeries("filter, equal pods", "filter", body(lambda _: populated.POD_MIB))
    yield CallSeries("filter, each pod another request", "filter", body(lambda number: 1_000 + number))
    yield CallSeries("filter, two cards", "filter", body(lambda _: populated.POD_MIB, 2))
    yield CallSeries(
        "filter, every node refused", "filter", body(lambda _: TOO_MUCH_MIB if is_used else 2 * TOO_MUCH_MIB)
    )
    yield CallSeries("prioritize, equal pods", "prioritize", body(lambda _: populated.POD_MIB))


class ApiBinder:
    """Binds pods through the API server, one after the other, node after node."""

    def __init__(self, cluster: InMemoryCluster, nodes: int, cards: int, pods: int) -> None:
        self._cluster = cluster
        self._place = ((number, number % nodes, number // nodes % cards) for number in itertools.count(pods))
        self._bound: list[int] = []

    def bind(self) -> None:
        """Bind one pod."""
        number, node, card = next(self._place)
        populated.put_pod(self._cluster, number, node, card)
        self._bound.append(number)

    def unbind(self) -> None:
        """Delete the pods that were bound, so that each series sees the cluster that `fill` made."""
        while self._bound:
            populated.remove_pod(self._cluster, self._bound.pop())


async def series(case: CallSeries, binder: ApiBinder, url: str, calls: int) -> list[float]:
    """Return the milliseconds of each call of a series."""
    took = []
    async with verb_caller.calling(url) as caller:
        for number in range(WARM_UP + calls):
            binder.bind()
            await asyncio.sleep(0.01)  # the extender takes the watch event
            milliseconds, reply = await caller.post(case.verb, case.body(number))
            took.append(milliseconds)
            if number == 0:
                check(case, reply)
    binder.unbind()
    await asyncio.sleep(SETTLED_S)
    return took[WARM_UP:]


def check(case: CallSeries, reply: bytes) -> None:
    """Fail where a reply does not say what the series is about."""
    answer = json.loads(reply)
    if case.verb == "filter":
        is_refused = "refused" in case.label
        assert bool(answer["FailedAndUnresolvableNodes"]) == is_refused, reply[:300]
        assert bool(answer["NodeNames"]) != is_refused, reply[:300]
    else:
        assert max(node["Score"] for node in answer) > 0, reply[:300]


async def event_cost_ms(binder: ApiBinder, pid: int) -> float:
    """Return the processor time that the extender takes for one watch event of a pod, in ms."""
    before = processor_s(pid)
    for _ in range(EVENTS // 50):
        for _ in range(50):
            binder.bind()
        await asyncio.sleep(0.05)
    await asyncio.sleep(DRAIN_S)
    bound = processor_s(pid) - before
    idle = processor_s(pid)
    await asyncio.sleep(DRAIN_S + EVENTS / 50 * 0.05)
    idle = processor_s(pid) - idle
    binder.unbind()
    await asyncio.sleep(DRAIN_S)
    return (bound - idle) / EVENTS * 1000


def processor_s(pid: int) -> float:
    """Return the processor time of a process, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_mib(pid: int) -> tuple[float, float]:
    """Return the resident memory of a process in MiB: now, and at its peak."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    found = {line.partition(":")[0]: line.split()[1] for line in lines if line.startswith(("VmRSS", "VmHWM"))}
    return int(found["VmRSS"]) / 1024, int(found["VmHWM"]) / 1024


async def measure(asked: argparse.Namespace, folder: Path | None) -> list[ResultRow]:
    """Measure one checkout."""
    cluster = populated.new()
    populated.fill(cluster, asked.nodes, asked.gpus, asked.pods)
    binder = ApiBinder(cluster, asked.nodes, asked.gpus, asked.pods)
    is_used = asked.pods >= asked.nodes * asked.gpus
    load = {name: getattr(asked, name) for name in ("nodes", "gpus", "pods", "names")}
    async with populated.extender(cluster, folder) as running:
        start = processor_s(running.pid)
        await asyncio.sleep(DRAIN_S)
        rows = [
            await _row(case, binder, running, asked, load) for case in cases(asked.nodes, asked.names, is_used=is_used)
        ]
        event = await event_cost_ms(binder, running.pid)
        now, peak = memory_mib(running.pid)
    figures = {
        "watch event": (event, "ms"),
        "ready": (running.ready_s, "s"),
        "ready, processor": (start, "s"),
        "memory": (now, "MiB"),
        "memory, peak": (peak, "MiB"),
    }
    return rows + [
        ResultRow(id=row_id(asked.nodes, asked.names, name), value=v, unit=unit, details=load)
        for name, (v, unit) in figures.items()
    ]


def row_id(nodes: int, names: int, figure: str) -> str:
    """Return the ID of a figure of one size: calls with `names` node names of `nodes`."""
    return slug("latency", f"{nodes} nodes, {names} names", figure)


async def _row(
    case: CallSeries, binder: ApiBinder, running: Extender, asked: argparse.Namespace, load: Document
) -> ResultRow:
    took = await series(case, binder, running.verbs, asked.calls)
    p99 = statistics.quantiles(took, n=100)[98]
    details = load | {"p99": round(p99, 3), "max": round(max(took), 3), "calls": len(took)}
    id_ = row_id(asked.nodes, asked.names, case.label)
    return ResultRow(id=id_, value=statistics.median(took), unit="ms", worst=p99, details=details)


def table(asked: argparse.Namespace, rows: list[ResultRow], before: list[ResultRow]) -> str:
    """Return the figures as lines; `before` are those of the baseline, in the same order, or empty."""
    peers = PEERS.get((asked.nodes, asked.pods), "")
    lines = [f"{asked.nodes} nodes x {asked.gpus} cards, {asked.pods} pods, {asked.names} names in a call. {peers}"]
    lines += [f"{'':<42}{'p50':>9}{'p99':>9}{'unit':>5}{'baseline p50, p99':>22}{'ratio':>7}"]
    for row, old in itertools.zip_longest(rows, before):
        value, known = row.value or 0.0, old.value or 0.0 if old else 0.0
        compared = f"{known:>12.2f}{old.worst or known:>10.2f}{value / known:>7.2f}" if old and known else ""
        lines.append(f"{row.id.rpartition('.')[2]:<42}{value:>9.3f}{row.worst or value:>9.3f}{row.unit:>5}{compared}")
    return "\n".join(lines)


async def main(asked: argparse.Namespace) -> None:
    """Print the table and record the figures."""
    before = await measure(asked, asked.baseline) if asked.baseline else []
    rows = await measure(asked, None)
    if asked.json:
        ResultRecorder(asked.json, "filter_latency", recorder.SCHEDULE_SOURCES).add(*rows)
    print(table(asked, rows, before))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1_000)
    parser.add_argument("--gpus", type=int, default=8, help="cards of each node")
    parser.add_argument("--pods", type=int, default=32_000, help="bound pods")
    parser.add_argument("--names", type=int, default=1_000, help="node names in a call")
    parser.add_argument("--calls", type=int, default=200, help="calls of each series")
    parser.add_argument("--baseline", type=Path, help="another checkout, measured first")
    parser.add_argument("--json", type=Path, help=recorder.JSON_HELP)
    asyncio.run(main(parser.parse_args()))
