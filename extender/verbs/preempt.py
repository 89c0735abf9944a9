"""Preemption: a pod of higher priority runs in place of pods of lower priority.

kube-scheduler counts no cards. Where a card is all that a node lacks, its own preemption finds no victim and never
calls an extender. So there are two ways to an eviction:

1. `verb` answers kube-scheduler's `preempt`. kube-scheduler has victims for what it counts itself, such as CPU. The
   answer adds the pods whose cards are needed too, and drops every node where that does not help. It also names the
   nodes that lack nothing but cards.
2. `run` acts for pods that filter refused on every node, where kube-scheduler does not call `preempt` at once: it
   nominates the pod for the best node and evicts the victims.

Only the leader preempts. Decisions are made one after the other and use at most a fifth of the time. Namespaces have
turns: each pod of a crowd that waits is decided on, and delays the pods of other namespaces by one decision.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from extender.lead.leader import Leader
from extender.protocol.wire import MetaVictims
from extender.state.budgets import Budgets
from extender.state.objects import WatchedPod
from extender.state.room import ClusterRoom
from vgpu.domain.errors import KubernetesError
from vgpu.domain.identifiers import NO_NODE, Namespace, NodeName, PodUid
from vgpu.pacing.fair_queue import FairQueue
from vgpu.placement import rank
from vgpu.placement.preempt import Eviction

VERB_DELAY_S: Final = 0.3  # kube-scheduler calls `preempt` some milliseconds after filter, or not at all
SEEN_S: Final = 2.0  # within which the watch shows what was written
PAUSE_FACTOR: Final = 4.0  # pause after a decision, in multiples of its duration
MAX_NOTED: Final = 1_000

log = logging.getLogger(__name__)


class PreemptionEvictor(Protocol):
    """The requests of a preemption, which raise KubernetesError."""

    async def nominate(self, pod: WatchedPod, node: NodeName) -> None:
        """Write the node on which room is made for a pod."""

    async def evict(self, victim: WatchedPod, preemptor: WatchedPod) -> None:
        """Delete a victim."""


@dataclass(frozen=True, slots=True)
class _Noted:
    pod: WatchedPod
    nodes: Sequence[NodeName]
    at: float


class Preemption:
    """Decides on evictions, and carries out those that kube-scheduler does not. `clock` is monotonic, in seconds.

    `pods` are those that the watch shows, by UID.
    """

    def __init__(
        self,
        pods: Mapping[PodUid, WatchedPod],
        room: ClusterRoom,
        budgets: Budgets,
        leader: Leader,
        evictor: PreemptionEvictor,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._pods = pods
        self._room = room
        self._budgets = budgets
        self._leader = leader
        self._evictor = evictor
        self._clock = clock
        self._sleep = sleep
        self._noted = FairQueue[Namespace, PodUid, _Noted](MAX_NOTED)
        self._is_noted = asyncio.Event()
        self._acted: tuple[str, NodeName, float] = ("", NO_NODE, 0.0)

    def note(self, pod: WatchedPod, nodes: Sequence[NodeName]) -> None:
        """Take a pod that filter refused on every node that has what kube-scheduler counts."""
        if pod.scheduling.may_preempt and nodes:
            self._noted.put(pod.namespace, pod.uid, _Noted(pod, nodes, self._clock()))
            self._is_noted.set()

    def awaited_node(self, pod: WatchedPod) -> NodeName:
        """Return the node on which pods are leaving for this pod, empty where there is none."""
        node, (uid, acted_on, at) = pod.scheduling.nominated_node, self._acted
        if node and (uid, acted_on) == (pod.uid, node) and self._clock() - at < SEEN_S:
            return node
        if not node or not self._room.leaving(node):
            return NO_NODE
        eviction = self._room.eviction(pod, node, (), self._budgets)
        return node if eviction is not None and not eviction.victims else NO_NODE

    async def verb(self, pod: WatchedPod, victims: Mapping[NodeName, MetaVictims]) -> dict[NodeName, MetaVictims]:
        """Answer `preempt`: the nodes where the pod fits after the evictions, with all their victims."""
        noted = self._noted.pop(pod.namespace, pod.uid)
        if self._leader.refusal() or pod.parsed.problems:
            return {}
        if pod.parsed.request is None:
            return dict(victims)
        found = {}
        nodes = [*victims, *(node for node in (noted.nodes if noted else ()) if node not in victims)]
        for node in nodes:
            helped = self._helped(pod, node, victims.get(node, MetaVictims()))
            if helped is not None:
                found[node] = helped
            await asyncio.sleep(0)  # one decision over many nodes must not hold up other verbs
        return found

    async def run(self) -> None:
        """Preempt for noted pods until cancelled."""
        while True:
            await self._is_noted.wait()
            if not self._noted:
                self._is_noted.clear()
                continue
            namespace, uid, noted = self._noted.first()
            await self._sleep(max(0.0, noted.at + VERB_DELAY_S - self._clock()))
            if self._noted.done(namespace, uid, noted):  # neither the verb took it, nor did filter refuse the pod again
                started = self._clock()
                await self._preempt(noted)
                await self._sleep((self._clock() - started) * PAUSE_FACTOR)

    def _helped(self, pod: WatchedPod, node: NodeName, given: MetaVictims) -> MetaVictims | None:
        """Return all victims of a node; None where they do not help, or where nothing must leave."""
        leaving = self._room.with_gangs(pod, node, given.uids)
        eviction = self._room.eviction(pod, node, leaving, self._budgets)
        if eviction is None:
            return None
        uids = (*eviction.uids, *leaving) or tuple(self._room.leaving(node))
        return MetaVictims(uids, given.violations + eviction.violations) if uids else None

    async def _preempt(self, noted: _Noted) -> None:
        pod = self._pods.get(noted.pod.uid)
        if pod is None or pod.node or pod.scheduling.is_terminating or self._leader.refusal() or self.awaited_node(pod):
            return
        node = await self._best_node(pod, noted.nodes)
        eviction = self._room.eviction(pod, node, (), self._budgets) if node else None
        if eviction is None or (not eviction.victims and not self._room.leaving(node)):
            return
        victims = [self._pods[uid] for uid in eviction.uids]
        try:
            await self._act(pod, node, victims)
        except KubernetesError as error:
            log.warning("preemption for pod %s/%s on %s: %s", pod.namespace, pod.name, node, error)

    async def _best_node(self, pod: WatchedPod, nodes: Sequence[NodeName]) -> NodeName:
        """Return the node with the cheapest eviction, empty where no eviction helps."""
        best: tuple[Eviction, NodeName] | None = None
        for node in nodes:
            eviction = self._room.eviction(pod, node, (), self._budgets)
            if eviction is not None and (best is None or _order(eviction, node) < _order(*best)):
                best = (eviction, node)
            await asyncio.sleep(0)
        return best[1] if best else NO_NODE

    async def _act(self, pod: WatchedPod, node: NodeName, victims: Sequence[WatchedPod]) -> None:
        """Nominate first: the watch then shows the nomination before the cards are free."""
        names = ", ".join(f"{victim.namespace}/{victim.name}" for victim in victims)
        log.info("pod %s/%s preempts on %s: %s", pod.namespace, pod.name, node, names or "nobody else")
        await self._evictor.nominate(pod, node)
        self._acted = (pod.uid, node, self._clock())
        await asyncio.gather(*(self._evictor.evict(victim, pod) for victim in victims))
        deadline = self._clock() + SEEN_S
        while not self._is_seen(pod, node, victims) and self._clock() < deadline:
            await self._sleep(0.02)

    def _is_seen(self, pod: WatchedPod, node: NodeName, victims: Sequence[WatchedPod]) -> bool:
        known = self._pods
        current = known.get(pod.uid)
        is_nominated = current is None or current.node or current.scheduling.nominated_node == node
        return bool(is_nominated) and all(
            victim.uid not in known or known[victim.uid].scheduling.is_terminating for victim in victims
        )


def _order(eviction: Eviction, node: NodeName) -> tuple[object, ...]:
    return (*eviction.cost, rank.fixed_order(node))
