"""Snapshots of the cluster for the admin REST: the verbs' event loop makes pieces of what has changed.

A snapshot costs the verbs' loop what has changed, whatever the size of the cluster. The admin's process, which puts the
pieces together, asks for one every half second at most.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Protocol

from extender.admin.exchange.messages import Piece, SnapshotEnd
from extender.admin.exchange.part_alarms import HEALTHY, PartHealth
from extender.admin.exchange.snapshot_changes import SnapshotChanges, SnapshotInputs
from extender.explain.last_decisions import LastDecision
from extender.lead.admin_address import THIS_ONE, LeadingReplica
from extender.state.fields import api_times
from extender.state.gang_members import GangKey
from extender.state.held_room import HeldRoom, Usages
from extender.state.objects import GpuNode, WatchedPod
from vgpu.domain.asks.request import PodRequest
from vgpu.domain.cards.reasons import Reason
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
        held: the room that is kept free for a gang; None where there is none.
        impossible_gangs: the gangs that do not fit the cards that exist, each with when that was found, Unix
            milliseconds.
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
    held: HeldRoom | None = None
    impossible_gangs: Mapping[GangKey, int] = field(default_factory=dict)

    @property
    def held_usages(self) -> Mapping[NodeName, Usages]:
        """What is kept free of each card, by node."""
        return self.held.usages if self.held is not None else {}

    @cached_property
    def has_nominations(self) -> bool:
        """Whether cards are reserved for pods that other pods are evicted for."""
        return any(pod.scheduling.nominated_node and pod.waits_for_node for pod in self.pods.values())

    def is_held_against(self, pod: WatchedPod) -> bool:
        """Whether room is kept free for a gang that this pod does not get."""
        return self.held is not None and self.held.is_against(pod)

    @property
    def stale_since(self) -> str:
        """Since when the extender has heard nothing of the cluster, as RFC 3339; empty where it hears."""
        return api_times.text(self.health.stale_since_ms)

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

    def holders(self, node: NodeName, card: CardUuid) -> Sequence[WatchedPod]:
        """Return the pods that hold a card of a node, ordered by name."""
        found = self._holders.get(node)
        if found is None:
            found = self._holders[node] = _holders(self._by_node.get(node, ()))
        return found.get(card, ())

    @cached_property
    def _holders(self) -> dict[NodeName, Mapping[CardUuid, Sequence[WatchedPod]]]:
        """The holders of the nodes that were asked about: most snapshots are asked about the few that have changed."""
        return {}

    @cached_property
    def _by_node(self) -> Mapping[NodeName, Sequence[WatchedPod]]:
        found = defaultdict[NodeName, list[WatchedPod]](list)
        for pod in self.pods.values():
            found[pod.node].append(pod)
        return found


def _holders(pods: Iterable[WatchedPod]) -> Mapping[CardUuid, Sequence[WatchedPod]]:
    """Return which of the pods bound to a node hold each card."""
    found = defaultdict[CardUuid, list[WatchedPod]](list)
    for pod in sorted(pods, key=lambda pod: (pod.namespace, pod.name)):
        if pod.node and not pod.is_terminal and isinstance(pod.assignment, Assignment):
            for uuid in pod.assignment.gpus():
                found[uuid].append(pod)
    return found


class SnapshotNotReady(VgpuError):
    """The first lists of the cluster are not complete."""


class ClusterQuestions(Protocol):
    """What the admin REST asks of the cluster beside snapshots."""

    async def reserved(self, pod: WatchedPod) -> dict[NodeName, NodeRefusal]:
        """Return the refusals of nodes where cards are reserved for other pods, which no node view shows."""

    async def why_gangs_wait(self, keys: Collection[GangKey]) -> WaitingGangs:
        """Return why gangs wait; those that do not wait are left out."""

    async def requests(self, pods: Sequence[WatchedPod]) -> list[PodRequest | None]:
        """Return what pods ask for, with the cards that affinity to the pods on them allows and rules out now."""


class ClusterSource(ClusterQuestions, Protocol):
    """The cluster as the admin REST sees it."""

    async def take(self) -> ClusterSnapshot:
        """Return a new snapshot. Raises SnapshotNotReady."""


class ChangeSource(ClusterQuestions, Protocol):
    """The cluster as the extender has it."""

    async def changes(self) -> Iterator[Piece | SnapshotEnd | None]:
        """Return what has changed since the last call, as `Snapshots.changes` does. Raises SnapshotNotReady."""


class Snapshots:
    """The source beside the cluster itself, for one copy of it; every method runs on the event loop of the verbs."""

    def __init__(self, inputs: SnapshotInputs, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._inputs = inputs
        self._cluster = inputs.cluster
        self._sleep = sleep
        self._changes = SnapshotChanges(inputs)

    async def changes(self) -> Iterator[Piece | SnapshotEnd | None]:
        """Return what has changed since the last call, in pieces; None where only time has passed, the end last.

        The copy lacks what the caller does not take: it must take all of it before the next call. It may rest anywhere
        in between. Raises SnapshotNotReady.
        """
        try:
            async with asyncio.timeout(READY_S):
                await self._inputs.ready()
        except TimeoutError:
            raise SnapshotNotReady("the first lists of the cluster are not complete") from None
        return self._changes.pieces()

    async def reserved(self, pod: WatchedPod) -> dict[NodeName, NodeRefusal]:
        """Return the refusals of nodes where cards are reserved for other pods, which no node view shows."""
        found = {}
        for node in self._cluster.objects.nominations.nodes():
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
