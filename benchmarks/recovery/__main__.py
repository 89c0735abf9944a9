"""How long until the next GPU pod is bound after a fault of each part, against an objective.

    python -m benchmarks.recovery --rounds 3 [--only extender-killed ...]       (root; see `make cluster`)

Small pods are created all the time. Measured is from the beginning of the fault, with the second until the part is
started again. Counted are pods that a kubelet failed for good, and those that the webhook did not see and `vgpu
readmit` did not create again.
"""

import argparse
import os
import signal
import statistics
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from benchmarks.record import recorder
from benchmarks.record.recorder import ResultRecorder
from benchmarks.record.result import ResultRow, slug
from benchmarks.recovery import faults, pods
from benchmarks.recovery.faults import Inject, Injected
from benchmarks.recovery.goals import GOALS, SOURCES
from cluster import progress, wait
from cluster.additions.scheduler_replicas import two_replicas
from cluster.cluster import GpuCluster

GIVE_UP_S: Final = 150.0
OF_NODE: Final = frozenset(
    {"device plugin killed", "device plugin's container killed", "device plugin stopped", "node rebooted"}
)

_QUIET_S: Final = 4.0
_USUAL: Final = 3  # Bindings to each node
_IN_FLIGHT_S: Final = 0.1  # a Binding that was sent before a process was killed is received later


@dataclass(slots=True)
class FaultCost:
    """What the rounds of a fault have cost: seconds until the next pod, failed pods, and the machine's load meanwhile.

    The load is the average number of processes that run or wait for a processor, over the minute before the next pod.
    A process that starts on a busy machine starts late, which is most of what a figure is above the waits of the code.
    """

    seconds: list[float] = field(default_factory=list)
    failed: list[int] = field(default_factory=list)
    load: list[float] = field(default_factory=list)


def main() -> None:
    """Measure each fault in rounds, print a line for each, and record the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3, help="of each fault")
    parser.add_argument("--only", nargs="+", choices=[slug(name) for name in GOALS], help="these faults alone")
    parser.add_argument("--logs", type=Path, help="folder for the cluster's logs")
    parser.add_argument("--json", type=Path, help=recorder.JSON_HELP)
    asked = parser.parse_args()
    wanted = [name for name in GOALS if not asked.only or slug(name) in asked.only]
    record = ResultRecorder(asked.json, "recovery", SOURCES)
    with GpuCluster() as cluster:
        cluster.create_namespace(pods.NAMESPACE)
        try:
            for name, cost in measured(cluster, wanted, asked.rounds):
                record.add(row(name, cost))
        finally:
            if asked.logs:
                cluster.save_logs(asked.logs)
    print(record)


def measured(cluster: GpuCluster, wanted: Sequence[str], rounds: int) -> Iterator[tuple[str, FaultCost]]:
    """Yield what each fault costs."""
    alone: dict[str, Inject] = {
        "extender killed": faults.extender_killed,
        "extender stopped": faults.extender_stopped,
        "webhook killed": faults.webhook_killed,
        "device plugin killed": faults.plugin_killed,
        "device plugin's container killed": faults.plugin_container_killed,
        "device plugin stopped": faults.plugin_stopped,
        "node rebooted": faults.node_rebooted,
    }
    for name in wanted:
        if name in alone:
            yield name, _rounds(cluster, name, alone[name], rounds)
    ends = {"killed": signal.SIGKILL, "stopped": signal.SIGTERM}
    of_leader = {name: ends[name.rpartition(" ")[2]] for name in wanted if name not in alone}
    if of_leader:
        with two_replicas(cluster) as both:
            for name, number in of_leader.items():
                yield name, _rounds(cluster, name, faults.leader_signalled(both, number), rounds)


def _rounds(cluster: GpuCluster, name: str, inject: Inject, rounds: int) -> FaultCost:
    cost = FaultCost()
    node = cluster.nodes[0].name if name in OF_NODE else ""
    with pods.come_and_go(cluster):
        for _ in range(rounds):
            until_usual(cluster)
            since, failed = cluster.control.audit.stat().st_size, pods.failed(cluster)
            injected = inject(cluster)
            cost.seconds.append(_until_bound(cluster, since, injected, node))
            cost.load.append(os.getloadavg()[0])
            until_usual(cluster)
            if name == "webhook killed":
                pods.readmit(cluster)
            cost.failed.append(len(pods.failed(cluster) - failed))
            progress.say(f"{name}: {cost.seconds[-1]:.1f} s until the next pod, {cost.failed[-1]} pods failed")
    return cost


def until_usual(cluster: GpuCluster) -> None:
    """Wait until pods are bound to every node, and some seconds more."""
    since = cluster.control.audit.stat().st_size

    def is_usual() -> bool:
        bound = Counter(binding.node for binding in pods.bindings(cluster, since))
        return all(bound[node.name] >= _USUAL for node in cluster.nodes)

    wait.until(is_usual, "Bindings to every node", GIVE_UP_S)
    time.sleep(_QUIET_S)


def _until_bound(cluster: GpuCluster, since: int, injected: Injected, node: str) -> float:
    """Return the seconds from a fault to the next Binding; of a fault of a node, to one there whose pod runs."""

    def found() -> float | None:
        bound = pods.bindings(cluster, since)
        if not node:
            return next((binding.at for binding in bound if binding.at > injected.began + _IN_FLIGHT_S), None)
        running = {pod["metadata"]["name"] for pod in pods.listed(cluster) if pod["status"].get("phase") == "Running"}
        there = {binding.pod for binding in bound if binding.node == node and binding.at > injected.restarted}
        return time.time() if there & running else None

    return wait.until(found, "the next Binding", GIVE_UP_S) - injected.began


def row(name: str, cost: FaultCost) -> ResultRow:
    """Return the row of a fault, with how it missed its goal."""
    goal, median = GOALS[name], statistics.median(cost.seconds)
    late = goal.seconds is not None and max(cost.seconds) > goal.seconds
    lost = goal.failed is not None and sum(cost.failed) > goal.failed
    faults_of = [text for text, is_missed in (("later than the goal", late), ("pods failed", lost)) if is_missed]
    return ResultRow(
        id=slug("recovery", name),
        value=median,
        unit="s",
        worst=max(cost.seconds),
        rounds=tuple(cost.seconds),
        goal=goal.words,
        fault="; ".join(faults_of),
        details={"count": len(cost.failed), "failed": sum(cost.failed), "load": max(cost.load)},
    )


if __name__ == "__main__":
    main()
