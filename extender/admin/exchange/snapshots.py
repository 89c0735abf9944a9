"""Snapshots of the cluster for the admin REST, made on the verbs' event loop in slices of time.

A snapshot is immutable, and costs the verbs' loop time: the admin's process asks for one every half second at most.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, Protocol

from extender.admin.exchange import times
from extender.admin.exchange.part_alarms import HEALTHY, PartHealth
from extender.explain.last_decisions import LastDecision
from extender.gangs.tracker import GangTracker
from extender.lead.admin_address import THIS_ONE, LeadingReplica
from extender.state.cluster import Cluster
from extender.state.gang_members import GangKey
from extender.state.objects import GpuNode, WatchedPod
from extender.verbs.filter import Filter
from vgpu.domain import names
from vgpu.domain.asks import node_rules
from vgpu.domain.asks.request import PodRequest
from vgpu.domain.cards.reasons import Reason
from vgpu.domain.cards.share import NodeState
from vgpu.domain.errors import VgpuError
from vgpu.domain.grants.assignment import Assignment
from vgpu.domain.identifiers import CardUuid, Namespace, NodeName, PodUid
from vgpu.placement.choose import NodeRefusal
from vgpu.placement.policies import DefaultPolicies
from vgpu.placement.snapshot import NodeView

WaitingGangs = Mapping[GangKey, tuple[Reason, str]]  # with the sentence

READY_S: Final = 5.0
SLICE_S: Final = 0.0005  # of work, after which the verbs' loop rests: a call that comes meanwhile waits for so long
REST_S: Final = 0.001
NODES_PER_LOOK: Final = 8  # at the clock
KEPT: Final = (Reason.CARD_RESERVED, Reason.CARD_KEPT_FOR_GANG)


@dataclass(frozen=True)
class ClusterSnapshot:
    """The pods and nodes at one time.

    Attributes:
        number: grows with each snapshot.
        pods: by UID.
        gpunodes: by name.
        views: what placement sees of each node, by name.
        slice_mib: MiB in a memory slice.
        decisions: the last decision on each pod that filter refused, by UID.
        why_not_bound: why no replica binds pods; empty where one does.
        policies: the cluster's packing policies, with what it has learned by then.
        health: what is wrong with the extender, and since when the snapshot is stale.
        leader: the replica that leads.
    """

    number: int
    pods: Mapping[PodUid, WatchedPod] = field(default_factory=dict)
    gpunodes: Mapping[NodeName, GpuNode] = field(default_factory=dict)
    views: Mapping[NodeName, NodeView] = field(default_factory=dict)
    slice_mib: int = 256
    decisions: Mapping[PodUid, LastDecision] = field(default_factory=dict)
    why_not_bound: str = ""
    policies: DefaultPolicies = field(default_factory=DefaultPolicies)
    health: PartHealth = HEALTHY
    leader: LeadingReplica = THIS_ONE

    @property
    def stale_since(self) -> str:
        """Since when the extender has heard nothing of the cluster, as RFC 3339; empty where it hears."""
        return times.text(self.health.stale_since_ms)

    @cached_property
    def by_name(self) -> Mapping[tuple[Namespace, str], WatchedPod]:
        """The pods by namespace and name."""
        return {(pod.namespace, pod.name): pod for pod in self.pods.values()}

    @cached_property
    def namespaces(self) -> frozenset[Namespace]:
        """The namespaces of all pods."""
        return frozenset(pod.namespace for pod in self.pods.values())

    @cached_property
    def node_of_card(self) -> Mapping[CardUuid, NodeName]:
        """The node on which each card counts, by the card's UUID."""
        return {
            state.card.uuid: view.name
            for view in self.views.values()
            for state in view.state.cards
            if not state.card.counts_on
        }

    @cached_property
    def holders(self) -> Mapping[tuple[NodeName, CardUuid], list[WatchedPod]]:
        """The pods that hold each card, by their node and the card's UUID, ordered by name."""
        found: dict[tuple[NodeName, CardUuid], list[WatchedPod]] = {}
        for pod in self.pods.values():
            if pod.node and not pod.is_terminal and isinstance(pod.assignment, Assignment):
                for uuid in pod.assignment.gpus():
                    found.setdefault((pod.node, uuid), []).append(pod)
        for pods in found.values():
            pods.sort(key=lambda pod: (pod.namespace, pod.name))
        return found


class SnapshotNotReady(VgpuError):
    """The first lists of the cluster are not complete."""


class ClusterSource(Protocol):
    """What the admin REST asks of the cluster."""

    async def take(self) -> ClusterSnapshot:
        """Return a new snapshot. Raises SnapshotNotReady."""

    async def reserved(self, pod: WatchedPod) -> dict[NodeName, NodeRefusal]:
        """Return the refusals of nodes where cards are reserved for other pods, which no node view shows."""

    async def why_gangs_wait(self, keys: Collection[GangKey]) -> WaitingGangs:
        """Return why gangs wait; those that do not wait are left out."""

    async def requests(self, pods: Sequence[WatchedPod]) -> list[PodRequest | None]:
        """Return what pods ask for, with the cards that affinity to the pods on them allows and rules out now."""


@dataclass(frozen=True, slots=True)
class SnapshotInputs:
    """What snapshots are made from.

    Attributes:
        cluster: the pods and nodes.
        node_filter: judges nodes; it must not be the verbs' one.
        gangs: what is known of each gang.
        decisions: returns the last decision on each pod that filter refused.
        ready: returns when the first lists are complete.
        why_not_bound: returns why no replica binds pods; empty where one does.
        policies: returns the cluster's packing policies, with what it has learned by now.
        health: returns what is wrong with the extender.
        leader: returns the replica that leads.
    """

    cluster: Cluster
    node_filter: Filter
    gangs: GangTracker
    decisions: Callable[[], Mapping[PodUid, LastDecision]]
    ready: Callable[[], Awaitable[None]]
    why_not_bound: Callable[[], str]
    policies: Callable[[], DefaultPolicies]
    health: Callable[[], PartHealth] = lambda: HEALTHY
    leader: Callable[[], LeadingReplica] = lambda: THIS_ONE


class Snapshots:
    """The source beside the cluster itself; every method runs on the event loop of the verbs."""

    def __init__(self, inputs: SnapshotInputs, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._inputs = inputs
        self._cluster = inputs.cluster
        self._sleep = sleep
        self._number = 0

    async def take(self) -> ClusterSnapshot:
        """Return a new snapshot. Raises SnapshotNotReady."""
        try:
            async with asyncio.timeout(READY_S):
                await self._inputs.ready()
        except TimeoutError:
            raise SnapshotNotReady("the first lists of the cluster are not complete") from None
        return await self._make()

    async def reserved(self, pod: WatchedPod) -> dict[NodeName, NodeRefusal]:
        """Return the refusals of nodes where cards are reserved for other pods, which no node view shows."""
        found = {}
        for node in {*self._cluster.objects.nominations.nodes(), *self._cluster.holds.against(pod)}:
            placement = self._inputs.node_filter.node(pod, node)
            if isinstance(placement, NodeRefusal) and placement.reason in KEPT:
                found[node] = placement
            await self._sleep(0)
        return found

    async def why_gangs_wait(self, keys: Collection[GangKey]) -> WaitingGangs:
        """Return why gangs wait; those that do not wait are left out."""
        found = {}
        for key in keys:
            if why := self._inputs.gangs.why(key):
                found[key] = why
                await self._sleep(0)
        return found

    async def requests(self, pods: Sequence[WatchedPod]) -> list[PodRequest | None]:
        """Return what pods ask for, with the cards that affinity to the pods on them allows and rules out now."""
        found = []
        for pod in pods:
            found.append(self._cluster.neighbours.request(pod))
            await self._sleep(0)
        return found

    async def _make(self) -> ClusterSnapshot:
        objects = self._cluster.objects
        pods, gpunodes = dict(objects.pods), dict(objects.gpunodes)
        views = {}
        resumed = self._cluster.now()
        for index, name in enumerate(gpunodes):
            if index % NODES_PER_LOOK == 0 and self._cluster.now() - resumed > SLICE_S:
                await self._sleep(REST_S)
                resumed = self._cluster.now()
            if name in objects.gpunodes:
                views[name] = self._view(name)
        self._number += 1
        inputs, policies = self._inputs, self._inputs.policies()
        return ClusterSnapshot(
            self._number, pods, gpunodes, views, self._cluster.slice_mib, inputs.decisions(), inputs.why_not_bound(),
            replace(policies, models=policies.models.copy()), inputs.health(), inputs.leader(),
        )  # fmt: skip

    def _view(self, name: NodeName) -> NodeView:
        usable = self._cluster.states.usable(name)
        kubelet = self._cluster.objects.nodes.get(name)
        allocatable = kubelet.allocatable if kubelet is not None else {}
        marks = kubelet.marks if kubelet is not None else node_rules.NO_MARKS
        silent_since = self._cluster.leases.silent_since(names.node_lease(name))
        if isinstance(usable, NodeState):
            return NodeView(name, usable, None, allocatable, silent_since, marks)
        return NodeView(name, self._cluster.states.of(name), usable, allocatable, silent_since, marks)
