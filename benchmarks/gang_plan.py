"""The first filter call of a gang, which plans all its pods: CPU time in all, and the longest time without a pause.

The extender's own objects run in this process, without HTTP, on nodes whose cards are free. Times are CPU time of the
thread: other programs on the machine do not count.

    python -m benchmarks.gang_plan --nodes 1000 --gpus 8 --pods 256
"""

import argparse
import asyncio
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from benchmarks.calls import populated
from benchmarks.record import recorder
from benchmarks.record.recorder import ResultRecorder
from benchmarks.record.result import ResultRow, slug
from extender.gangs.candidate_nodes import NodeSearch
from extender.gangs.known_gangs import GangTimes
from extender.gangs.member_filter import MemberFilter
from extender.gangs.plan_maker import PlanMaker
from extender.gangs.tracker import GangTracker
from extender.state.cluster import Cluster
from extender.state.objects import GpuNode, KubeNode, WatchedLease, WatchedPod
from extender.state.pod_reader import PodReader
from extender.state.room import ClusterRoom
from extender.verbs.filter import Filter
from vgpu.domain import names
from vgpu.domain.asks.policy import PackingPolicy
from vgpu.domain.cards.device import Card, Node
from vgpu.domain.identifiers import NodeName
from vgpu.placement.policies import DefaultPolicies

SHARE_MIB: Final = 8_192
DEADLINE_S: Final = 30.0
POLICIES: Final = (PackingPolicy.FRAGMENTATION, PackingPolicy.BINPACK, PackingPolicy.SPREAD, PackingPolicy.TOPOLOGY)


class Leading:
    """This process leads."""

    def refusal(self) -> str:
        """Return why this process does not lead: empty, because it leads."""
        return ""


class NobodyWaits:
    """A waker that does nothing: kube-scheduler does not run here, so no pod waits in its queue."""

    def wake(self, uid: str, why: str) -> None:
        """Take a pod."""

    def changed(self, node: str) -> None:
        """Take a node."""


@dataclass(slots=True)
class Slices:
    """The pauses of a call, and the CPU time between them in seconds."""

    begun: float = field(default_factory=time.thread_time)
    lengths: list[float] = field(default_factory=list)

    async def pause(self, _seconds: float) -> None:
        """Take a pause."""
        self.end()

    def end(self) -> None:
        """End a slice, and begin the next."""
        now = time.thread_time()
        self.lengths.append(now - self.begun)
        self.begun = now


def cluster_of(nodes: int, cards: int) -> Cluster:
    """Return a cluster in which all cards are free."""
    found = Cluster(populated.SLICE_MIB, time.thread_time)
    for number in range(nodes):
        name = populated.node_name(number)
        known = tuple(
            Card(populated.card_uuid(number, index), index, populated.MODEL, populated.MEMORY_MIB, numa_node=index // 4)
            for index in range(cards)
        )
        found.updates.upsert_gpunodes(
            GpuNode(Node(NodeName(name), populated.SLICE_MIB, known), name, "2026-01-01T00:00:00Z")
        )
        slices = cards * populated.MEMORY_MIB // populated.SLICE_MIB
        found.updates.upsert_nodes(KubeNode(NodeName(name), {names.SLICE: slices, names.CARD: cards}))
        found.leases.put(WatchedLease(names.node_lease(NodeName(name)), name, "x", 1 << 30))
    return found


def member(number: int, count: int, memory_mib: int) -> WatchedPod:
    """Return a pod of the gang."""
    made = populated.pod(f"gang-{number:03}", "default", memory_mib)
    made["metadata"] |= {"uid": f"30000000-0000-4000-8000-{number:012x}", "resourceVersion": "1"}
    made["metadata"]["annotations"] = {names.GANG: "train", names.GANG_SIZE: str(count)}
    return PodReader().decoded(made)


def planned(cluster: Cluster, pods: int, policy: PackingPolicy, *, share: bool) -> Slices:
    """Plan a gang, and take the plan back."""
    defaults = DefaultPolicies(policy, policy)
    tracker = GangTracker(cluster, NobodyWaits(), GangTimes(cluster.now, lambda: 0, DEADLINE_S))
    candidates = NodeSearch(cluster, ClusterRoom(cluster, defaults), defaults)
    member_filter = MemberFilter(tracker, PlanMaker(tracker, candidates, defaults, Leading(), cluster.now), Leading())
    node_filter = Filter(cluster, defaults, gangs=member_filter)
    made = [member(number, pods, SHARE_MIB if share else populated.MEMORY_MIB) for number in range(pods)]
    for pod in made:
        cluster.updates.upsert_pod(pod)
    named = list(cluster.objects.gpunodes)
    return asyncio.run(_asked(cluster, node_filter, made, named))


async def _asked(cluster: Cluster, node_filter: Filter, pods: list[WatchedPod], named: list[NodeName]) -> Slices:
    await cluster.index(_no_pause)
    slices = Slices()
    answer = await node_filter.judge(pods[0], named, slices.pause)
    slices.end()
    assert answer.fits, answer.reasons
    for pod in pods:
        cluster.updates.delete_pod(pod)
    return slices


async def _no_pause(_seconds: float) -> None:
    pass


def measured(nodes: int, cards: int, pods: int, rounds: int) -> Iterator[ResultRow]:
    """Measure every policy, for pods of a tenth of a card and for whole cards."""
    cluster = cluster_of(nodes, cards)
    for policy in POLICIES:
        for share in (True, False):
            runs = [planned(cluster, pods, policy, share=share) for _ in range(rounds)]
            longest = [max(run.lengths) * 1000 for run in runs]
            total = statistics.median(sum(run.lengths) * 1000 for run in runs)
            yield ResultRow(
                id=slug("gang_plan", str(policy), "shares" if share else "whole cards"),
                value=statistics.median(longest),
                unit="ms",
                worst=max(longest),
                details={"total": round(total, 1), "nodes": nodes, "gpus": cards, "pods": pods},
            )


def table(rows: Sequence[ResultRow]) -> str:
    """Return the figures as lines."""
    lines = [f"{'CPU time, ms':<44}{'in all':>9}{'longest without a pause':>25}"]
    lines += [f"{row.id:<44}{row.details['total']:>9.1f}{row.value:>25.1f}" for row in rows]
    return "\n".join(lines)


def main() -> None:
    """Print the table and record the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1_000)
    parser.add_argument("--gpus", type=int, default=8, help="cards of each node")
    parser.add_argument("--pods", type=int, default=256, help="of the gang")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, help=recorder.JSON_HELP)
    asked = parser.parse_args()
    rows = list(measured(asked.nodes, asked.gpus, asked.pods, asked.rounds))
    if asked.json:
        ResultRecorder(asked.json, "gang_plan", recorder.SCHEDULE_SOURCES).add(*rows)
    print(f"a gang of {asked.pods} pods, {asked.nodes} nodes x {asked.gpus} cards\n{table(rows)}")


if __name__ == "__main__":
    main()
