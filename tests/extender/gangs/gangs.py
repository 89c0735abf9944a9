"""An extender without its API server, for tests of gangs: two nodes of two cards of four slices."""

import asyncio
from dataclasses import dataclass, field, replace
from typing import Any

from extender.gangs.bind_gate import BindGate
from extender.gangs.candidate_nodes import NodeSearch
from extender.gangs.deadlines import GangDeadlines
from extender.gangs.known_gangs import GangTimes
from extender.gangs.member_filter import MemberFilter
from extender.gangs.plan_maker import PlanMaker
from extender.gangs.room_holding import HoldTimes, RoomHolding
from extender.gangs.tracker import GangTracker
from extender.history.recording.feed import Feed
from extender.history.recording.recorder import NO_RECORDER
from extender.state.cluster import Cluster
from extender.state.objects import GpuNode, KubeNode, WatchedLease
from extender.state.pod_reader import PodReader
from extender.state.room import ClusterRoom
from extender.verbs.bind import Binder
from extender.verbs.filter import Filter
from tests import strategies
from tests.extender.conftest import Clock, Leader
from vgpu.domain import names
from vgpu.domain.cards.device import Node
from vgpu.domain.identifiers import CardUuid, NodeName
from vgpu.placement.policies import DefaultPolicies

DEADLINE_S = 30.0
HOLD_AFTER_S = 60.0
HOLD_S = 120.0
NODES = (NodeName("n1"), NodeName("n2"))
SLICES = 4


@dataclass
class WakeList:
    """Whom and which nodes the waker was told."""

    woken: list[str] = field(default_factory=list)
    nodes: list[str] = field(default_factory=list)

    def wake(self, uid: str, why: str) -> None:  # noqa: ARG002 - the waker's protocol
        self.woken.append(uid)

    def changed(self, node: str) -> None:
        self.nodes.append(node)


def tracker(cluster: Cluster, waker: WakeList | None = None) -> GangTracker:
    return GangTracker(cluster, waker or WakeList(), GangTimes(cluster.now, lambda: 0, DEADLINE_S))


def node(name: str) -> Node:
    cards = (replace(strategies.card(n, SLICES * 256), uuid=CardUuid(f"GPU-{name}-{n}")) for n in range(2))
    return Node(NodeName(name), 256, tuple(cards))


@dataclass
class NoEvents:
    """Takes Events."""

    def record(self, about: Any, reason: str, message: str) -> None:
        assert len(message) <= 1024, (about, reason)


class Extender:
    """One process."""

    def __init__(self, clock: Clock, end: Any, hold_after_s: float = HOLD_AFTER_S) -> None:
        self.cluster = Cluster(256, clock)
        for name in NODES:
            self.cluster.updates.upsert_gpunodes(GpuNode(node(name), name, "2026-01-01T00:00:00Z"))
            self.cluster.updates.upsert_nodes(KubeNode(name, {names.SLICE: 2 * SLICES, names.CARD: 2}))
            self.cluster.leases.put(WatchedLease(names.node_lease(name), name, "x", 1 << 30))
        defaults, leader = DefaultPolicies(), Leader()
        self.tracker = tracker(self.cluster)
        room = ClusterRoom(self.cluster, defaults)
        plan_maker = PlanMaker(self.tracker, NodeSearch(self.cluster, room, defaults), defaults, leader, lambda: 0.0)
        self.filter = Filter(self.cluster, defaults, gangs=MemberFilter(self.tracker, plan_maker, leader))
        client: Any = None  # never called
        self.gate = BindGate(self.tracker, leader)
        feed = Feed(NO_RECORDER, {}, lambda: 0, "")
        self.binder = Binder(
            client,
            self.cluster.objects.pods,
            PodReader(),
            self.cluster.reservations,
            self.filter,
            leader,
            feed,
            self.gate,
        )
        recorder: Any = NoEvents()
        times = HoldTimes(hold_after_s, HOLD_S)
        self.holding = RoomHolding(self.tracker, WakeList(), defaults, times, lambda: 0.0)
        self.deadlines = GangDeadlines(self.tracker, leader, end, recorder, asyncio.sleep, self.holding)
