"""Pods per second through a real kube-scheduler with our extender, on nodes that exist in the API server only.

The baseline, in the same run: the same number of plain pods through a default kube-scheduler on the same nodes. Both
start with all pods waiting, created while the scheduler was stopped, so that creating them is not what is timed. While
they are bound, the processor time of each program is measured, and the writes to the pods are counted in the audit log.

    python -m benchmarks.schedule --nodes 200 --cards 8 --pods 1000      (root; see `make cluster`)
"""

import argparse
import json
import re
import statistics
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks import filter_latency
from benchmarks.record import recorder, result
from benchmarks.record.recorder import ResultRecorder
from cluster import progress, wait
from cluster.cluster import GpuCluster
from vgpu.domain import names
from vgpu.domain.identifiers import NodeName

Document = dict[str, Any]
CARD_MIB = 81920
SLICE_MIB = 256
FOR_EVER_S = 86400
PODS = "/api/v1/namespaces/{}/pods"
PROGRAMS = ("etcd", "kube-apiserver", "kube-scheduler", "extender")
_TOOK = re.compile(r"(filter|prioritize|bind) took ([\d.]+) ms")


@dataclass(frozen=True, slots=True)
class ScheduleTimes:
    """Of all pods of a kind: seconds from first to last binding, writes to the pods, processor seconds by program."""

    seconds: float
    writes: int
    processor_s: dict[str, float]


def main() -> None:
    """Measure plain pods and pods with shares, print one table, and record the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=200, help="number of nodes")
    parser.add_argument("--cards", type=int, default=8, help="number of cards of each node")
    parser.add_argument("--pods", type=int, default=1000, help="number of pods of each kind")
    parser.add_argument("--json", type=Path, help=recorder.JSON_HELP)
    asked = parser.parse_args()
    with GpuCluster(count=0) as cluster:
        found = run(cluster, asked.nodes, asked.cards, asked.pods)
    record = ResultRecorder(asked.json, "schedule", recorder.SCHEDULE_SOURCES)
    record.add(*rows(found))
    print(f"{table(found)}\n\n{record}")


def run(cluster: GpuCluster, nodes: int, cards: int, pods: int) -> Document:
    """Create the nodes, schedule both kinds of pods, and return every figure."""
    cluster.control.controllers.stop()  # it would taint these nodes, because they have no kubelets
    cluster.extender.restart("--log-level=debug")
    make_nodes(cluster, nodes, cards)
    progress.say(f"{nodes} nodes of {cards} cards are there")
    plain = timed(cluster, "plain", pods, cluster.control.scheduler, {})
    read = cluster.extender.log.stat().st_size
    share = {names.GPU_MEM: "8192", names.GPU_CORES: "10"}
    shares = timed(cluster, "shares", pods, cluster.scheduler.process, share)
    verbs = verb_times(cluster.extender.log, read)
    serial_s = sum(verbs["filter"]) + sum(verbs["prioritize"])
    return {
        "nodes": nodes,
        "cards": cards,
        "pods": pods,
        "plain_pods_per_s": pods / plain.seconds,
        "gpu_pods_per_s": pods / shares.seconds,
        "ratio": plain.seconds / shares.seconds,
        "share_of_time_in_filter_and_prioritize": serial_s / shares.seconds,
        "writes_a_pod": (plain.writes / pods, shares.writes / pods),
        "processor_ms_a_pod": {
            program: (plain.processor_s[program] * 1000 / pods, shares.processor_s[program] * 1000 / pods)
            for program in PROGRAMS
        },
        "median_ms": {name: statistics.median(times) * 1000 for name, times in verbs.items()},
        "calls": {name: len(times) for name, times in verbs.items()},
    }


def make_nodes(cluster: GpuCluster, count: int, cards: int) -> None:
    """Create Nodes, GPUNodes and Leases as kubelets and device plugins do."""

    def make(number: int) -> None:
        name = f"node-{number:04}"
        slices = str(cards * CARD_MIB // SLICE_MIB)
        amounts = {"cpu": "64", "memory": "512Gi", "pods": "500", names.SLICE: slices, names.CARD: str(cards)}
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
        status = {"capacity": amounts, "allocatable": amounts, "conditions": [ready]}
        cluster.api.create("/api/v1/nodes", {"metadata": {"name": name}, "status": status})
        cluster.api.patch(
            f"/api/v1/nodes/{name}", {"spec": {"taints": None}}
        )  # not-ready, which admission puts on new ones
        meta = {"apiVersion": names.API_VERSION, "kind": "GPUNode", "metadata": {"name": name}}
        seen = [card(name, n) for n in range(cards)]
        cluster.api.create(names.GPUNODES_PATH, meta | {"spec": {}})
        status = {"status": {"sliceMiB": SLICE_MIB, "pluginVersion": "0", "cards": seen}}
        cluster.api.patch(f"{names.GPUNODES_PATH}/{name}/status", status)
        spec = {"holderIdentity": name, "leaseDurationSeconds": FOR_EVER_S, "renewTime": stamp()}
        lease = {"metadata": {"name": names.node_lease(NodeName(name))}, "spec": spec}
        cluster.api.create(f"/apis/coordination.k8s.io/v1/namespaces/{names.NAMESPACE}/leases", lease)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(make, range(count)))


def card(node: str, index: int) -> Document:
    """Return what a device plugin reports of one card."""
    fields = {"uuid": f"GPU-{node}-{index}", "index": index, "model": "NVIDIA H100 80GB HBM3"}
    return fields | {"memoryMiB": CARD_MIB, "healthy": True, "heldSlices": 0, "heldWhole": False}


def timed(cluster: GpuCluster, namespace: str, count: int, scheduler: Any, share: Document) -> ScheduleTimes:
    """Create pods while their scheduler is stopped, start it, and measure from the first to the last binding."""
    scheduler.stop()
    cluster.api.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
    resources = {"limits": {"cpu": "100m"} | share}
    spec = {"containers": [{"name": "main", "image": "none", "resources": resources}]}

    def create(number: int) -> None:
        cluster.api.create(PODS.format(namespace), {"metadata": {"name": f"p{number}"}, "spec": spec})

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(create, range(count)))
    read = cluster.control.audit.stat().st_size
    scheduler.start()
    pids = {
        "etcd": cluster.control.etcd.pid,
        "kube-apiserver": cluster.control.apiserver.pid,
        "kube-scheduler": scheduler.pid,
        "extender": cluster.extender.process.pid,
    }
    before = {program: filter_latency.processor_s(pid) for program, pid in pids.items()}
    first, last = bound_between(cluster, namespace, count)
    took = {program: filter_latency.processor_s(pid) - before[program] for program, pid in pids.items()}
    progress.say(f"{namespace}: {count} pods bound in {last - first:.1f} s")
    return ScheduleTimes(last - first, writes(cluster.control.audit, read, namespace), took)


def writes(audit: Path, since: int, namespace: str) -> int:
    """Return how often pods of a namespace were written, from the API server's audit log."""
    events = (json.loads(line) for line in audit.read_bytes()[since:].splitlines())
    about = (event.get("objectRef") or {} for event in events)
    return sum(reference.get("resource") == "pods" and reference.get("namespace") == namespace for reference in about)


def bound_between(cluster: GpuCluster, namespace: str, count: int) -> tuple[float, float]:
    """Return the times when the first and the last pod were seen bound."""
    path, first = PODS.format(namespace), 0.0

    def bound() -> bool:
        nonlocal first
        left = cluster.api.get(path, fieldSelector="spec.nodeName=", limit="1")
        remaining = len(left["items"]) + left["metadata"].get("remainingItemCount", 0)
        if remaining < count and not first:
            first = time.monotonic()
        return bool(remaining == 0)

    wait.until(bound, f"{count} pods bound", 300)
    return first, time.monotonic()


def verb_times(log: Path, since: int) -> dict[str, list[float]]:
    """Return the seconds of each call of each verb, from the extender's log at level debug."""
    found: dict[str, list[float]] = {"filter": [], "prioritize": [], "bind": []}
    for verb, milliseconds in _took(log, since):
        found[verb].append(milliseconds / 1000)
    return found


def _took(log: Path, since: int) -> Iterator[tuple[str, float]]:
    for line in log.read_bytes()[since:].decode().splitlines():
        match = _TOOK.search(line)
        if match:
            yield match[1], float(match[2])


def stamp() -> str:
    """Return the time of day as a Lease has it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def rows(found: Document) -> list[result.ResultRow]:
    """Return the rows of a result; each has the load as details."""
    load = {name: found[name] for name in ("nodes", "cards", "pods")}
    figures = {
        "pods-per-s": (found["gpu_pods_per_s"], "pods/s", found["plain_pods_per_s"]),
        "ratio": (found["ratio"], "ratio", None),
        "in-filter-and-prioritize": (100 * found["share_of_time_in_filter_and_prioritize"], "%", None),
        **{f"median-{verb}": (value, "ms", None) for verb, value in found["median_ms"].items()},
        "writes-a-pod": (found["writes_a_pod"][1], "writes", found["writes_a_pod"][0]),
        **{
            f"processor-{program}": (shares, "ms a pod", plain)
            for program, (plain, shares) in found["processor_ms_a_pod"].items()
        },
    }
    return [
        result.ResultRow(id=f"schedule.{name}", value=value, unit=unit, native=native, details=load)
        for name, (value, unit, native) in figures.items()
    ]


def table(found: Document) -> str:
    """Return the figures as a Markdown table."""
    median, calls = found["median_ms"], found["calls"]
    lines = [
        ("load", f"{found['pods']} pods, {found['nodes']} nodes x {found['cards']} cards"),
        ("plain pods, default scheduler", f"{found['plain_pods_per_s']:.1f} pods/s"),
        ("pods with a share, through us", f"{found['gpu_pods_per_s']:.1f} pods/s"),
        ("ratio to plain", f"{found['ratio']:.2f}"),
        ("time in filter and prioritize", f"{found['share_of_time_in_filter_and_prioritize']:.1%}"),
        *((f"median {verb}", f"{median[verb]:.2f} ms of {calls[verb]} calls") for verb in median),
        ("writes to a pod: plain, with a share", "{:.2f}, {:.2f}".format(*found["writes_a_pod"])),
        *(
            (f"processor time of {program}", f"{plain:.2f}, {shares:.2f} ms a pod")
            for program, (plain, shares) in found["processor_ms_a_pod"].items()
        ),
    ]
    return "\n".join(f"| {name} | {value} |" for name, value in lines)


if __name__ == "__main__":
    main()
