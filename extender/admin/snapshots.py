"""Snapshots of the cluster for the admin REST, made on the verbs' event loop in slices of time.

A snapshot is immutable and valid for `MAX_AGE_S`: many requests share one, so that no client decides how much time the
verbs' event loop spends on them.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from extender import gang_members
from extender.cluster import Cluster
from extender.filter import Filter
from extender.gang_members import GangKey
from extender.gangs.book import GangBook
from extender.last_decisions import Decision
from extender.objects import GpuNode, Pod
from vgpu.assignment import Assignment
from vgpu.placement.choose import Refusal
from vgpu.placement.snapshot import NodeView
from vgpu.reasons import Reason
from vgpu.request import PodRequest
from vgpu.share import NodeState

WaitingGangs = Mapping[GangKey, tuple[Reason, str]]  # with the sentence

MAX_AGE_S: Final = 0.5
SLICE_S: Final = 0.002
NODES_PER_LOOK: Final = 8  # at the clock
KEPT: Final = (Reason.CARD_RESERVED, Reason.CARD_KEPT_FOR_GANG)


@dataclass(frozen=True)
class Snapshot:
    """The pods and nodes at one time. `number` grows with each snapshot; `made_at` is monotonic, in seconds."""

    number: int
    pods: Mapping[str, Pod] = field(default_factory=dict)
    gpunodes: Mapping[str, GpuNode] = field(default_factory=dict)
    views: Mapping[str, NodeView] = field(default_factory=dict)
    slice_mib: int = 256
    decisions: Mapping[str, Decision] = field(default_factory=dict)
    made_at: float = float("-inf")

    def is_fresh(self, now: float) -> bool:
        """Whether it is at most `MAX_AGE_S` old."""
        return now - self.made_at <= MAX_AGE_S

    @cached_property
    def by_name(self) -> Mapping[tuple[str, str], Pod]:
        """The pods by namespace and name."""
        return {(pod.namespace, pod.name): pod for pod in self.pods.values()}

    @cached_property
    def namespaces(self) -> frozenset[str]:
        """The namespaces of all pods."""
        return frozenset(pod.namespace for pod in self.pods.values())

    @cached_property
    def node_of_card(self) -> Mapping[str, str]:
        """The node of each card, by the card's UUID."""
        return {card.card.uuid: view.name for view in self.views.values() for card in view.state.cards}

    @cached_property
    def holders(self) -> Mapping[str, list[Pod]]:
        """The pods that hold each card, by the card's UUID, ordered by name."""
        found: dict[str, list[Pod]] = {}
        for pod in self.pods.values():
            if pod.node and not pod.is_terminal and isinstance(pod.assignment, Assignment):
                for uuid in pod.assignment.gpus():
                    found.setdefault(uuid, []).append(pod)
        for pods in found.values():
            pods.sort(key=lambda pod: (pod.namespace, pod.name))
        return found


class Snapshots:
    """Makes snapshots; every method runs on the event loop of the verbs.

    `node_filter` must not be the verbs' one. `decisions` returns the last decision on each pod that filter refused.
    """

    def __init__(
        self,
        cluster: Cluster,
        node_filter: Filter,
        gangs: GangBook,
        decisions: Callable[[], Mapping[str, Decision]],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._cluster = cluster
        self._gangs = gangs
        self._filter = node_filter
        self._decisions = decisions
        self._sleep = sleep
        self._last = Snapshot(0)
        self._lock = asyncio.Lock()

    async def take(self) -> Snapshot:
        """Return a snapshot that is at most `MAX_AGE_S` old."""
        async with self._lock:
            if not self._last.is_fresh(self._cluster.now()):
                self._last = await self._make()
            return self._last

    async def reserved(self, pod: Pod) -> dict[str, Refusal]:
        """Return the refusals of nodes where cards are reserved for other pods, which no node view shows."""
        found = {}
        for node in {*self._cluster.objects.nominations.nodes(), *self._cluster.holds.against(pod)}:
            placement = self._filter.node(pod, node)
            if isinstance(placement, Refusal) and placement.reason in KEPT:
                found[node] = placement
            await self._sleep(0)
        return found

    async def why_gangs_wait(self, pods: Collection[Pod]) -> WaitingGangs:
        """Return why the gangs of some pods wait; gangs that do not wait are left out."""
        found = {}
        for key in dict.fromkeys(map(gang_members.key_of, pods)):
            if key is not None and (why := self._gangs.why(key)):
                found[key] = why
                await self._sleep(0)
        return found

    async def requests(self, pods: Sequence[Pod]) -> list[PodRequest | None]:
        """Return what pods ask for, with the cards that affinity to the pods on them allows and rules out now."""
        found = []
        for pod in pods:
            found.append(self._cluster.request(pod))
            await self._sleep(0)
        return found

    async def _make(self) -> Snapshot:
        objects = self._cluster.objects
        pods, gpunodes = dict(objects.pods), dict(objects.gpunodes)
        views = {}
        resumed = self._cluster.now()
        for index, name in enumerate(gpunodes):
            if index % NODES_PER_LOOK == 0 and self._cluster.now() - resumed > SLICE_S:
                await self._sleep(SLICE_S)
                resumed = self._cluster.now()
            if name in objects.gpunodes:
                views[name] = self._view(name)
        number, now = self._last.number + 1, self._cluster.now()
        return Snapshot(number, pods, gpunodes, views, self._cluster.slice_mib, self._decisions(), now)

    def _view(self, name: str) -> NodeView:
        usable = self._cluster.usable_state(name)
        kubelet = self._cluster.objects.nodes.get(name)
        allocatable = kubelet.allocatable if kubelet is not None else {}
        if isinstance(usable, NodeState):
            return NodeView(name, usable, None, allocatable)
        return NodeView(name, self._cluster.state(name), usable, allocatable)
