"""Wakes pods that wait for something that kube-scheduler does not see.

kube-scheduler tries a refused pod again after an event about a pod or a Node, and otherwise after five minutes. It does
not watch GPUNodes and Leases. So when a node can take more than before (its card is uncordoned, or healthy again, or
its device plugin is back), the pods that now fit on it are touched: this program changes a condition in the pod's
status, and kube-scheduler tries the pod again because the pod has changed.

A pod that is not admitted, has scheduling gates, or may not be on the node by its own rules is left alone.

Two races need care. A pod may be refused just before a node can take it, and the watch shows only afterwards that the
pod waits: so each pod that begins to wait is also tried on the nodes that changed in the last seconds. And
kube-scheduler may see a Node that offers more before this program sees it, so that the pod is refused once more: so
pods are also woken when a Node offers more.

Pods are taken by priority, and each takes its share of the node's free cards, so that no more pods are touched than the
node can take. A token bucket limits the writes. Of the pods that are named to be touched, such as members of gangs,
namespaces have turns, and changed nodes come between them: a crowd of gangs delays nobody by more than half a second.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Final

from extender.effects import pod_conditions
from extender.effects.recent_nodes import RecentNodes
from extender.lead.leader import Leader
from extender.state.cluster import Cluster
from extender.state.objects import WatchedPod
from vgpu.adapters.kubernetes import timestamps
from vgpu.adapters.kubernetes.client import KubernetesClient
from vgpu.domain import names
from vgpu.domain.cards.share import CardState, NodeState
from vgpu.domain.errors import KubernetesError
from vgpu.domain.identifiers import NO_NAMESPACE, Namespace, NodeName, PodUid
from vgpu.pacing.fair_queue import FairQueue
from vgpu.pacing.token_bucket import TokenBucket
from vgpu.placement import preempt
from vgpu.placement.policies import DefaultPolicies

if TYPE_CHECKING:
    from vgpu.domain.asks.request import PodRequest

RATE_PER_S: Final = 50.0  # of writes
BURST: Final = 100
RETRY_S: Final = 2.0  # after a write that failed, or while another replica leads
ROUND_S: Final = 0.1  # between two rounds: pods that begin to wait together are tried together
BATCH: Final = 50  # pods that are looked at before other work gets its turn
NAMED_AT_ONCE: Final = 25  # pods that are touched before nodes get their turn: half a second
CONDITION: Final = f"{names.DOMAIN}/CardsAvailable"

log = logging.getLogger(__name__)


def can_take_more(before: NodeState, after: NodeState) -> bool:
    """Whether the change of a node's state may let a pod in that was refused before."""
    known = {state.card.uuid: state for state in before.cards}
    is_other = before.slice_mib != after.slice_mib
    return is_other or any(_is_looser(known.get(state.card.uuid), state) for state in after.cards)


def _is_looser(before: CardState | None, after: CardState) -> bool:
    if before is None or after.free_slices > before.free_slices or after.free_mib > before.free_mib:
        return True
    old, new = before.card, after.card
    is_open_again = (old.cordoned and not new.cordoned) or (new.healthy and not old.healthy)
    return is_open_again or (old.mode, old.model) != (new.mode, new.model)


class Waker:
    """Takes nodes that can take more, and touches waiting pods. `clock` is monotonic, `now` the wall clock."""

    def __init__(
        self,
        client: KubernetesClient,
        cluster: Cluster,
        defaults: DefaultPolicies,
        clock: Callable[[], float],
        now: Callable[[], datetime],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._client = client
        self._cluster = cluster
        self._defaults = defaults
        self._now = now
        self._bucket = TokenBucket(RATE_PER_S, BURST, clock)
        self._sleep = sleep
        self._recent = RecentNodes(clock)
        self._waiting: dict[PodUid, None] = {}
        self._newly_waiting: dict[PodUid, None] = {}  # of them, those that began to wait after a node had changed
        self._seeking: set[PodUid] = set()  # of them, those that must be beside other pods
        self._nodes: dict[NodeName, None] = {}
        self._named = FairQueue[Namespace, PodUid, str]()
        self._is_changed = asyncio.Event()

    def take(self, pod: WatchedPod) -> None:
        """Take a pod that is new or changed."""
        if pod.is_unschedulable and not pod.node and not pod.is_terminal:
            if pod.uid not in self._waiting and self._recent.names():
                self._newly_waiting[pod.uid] = None
                self._is_changed.set()
            self._waiting[pod.uid] = None
            if pod.parsed.request and pod.parsed.request.options.affinity:
                self._seeking.add(pod.uid)
        else:
            self.forget(pod.uid)

    def forget(self, uid: PodUid) -> None:
        """Take a pod's deletion."""
        self._waiting.pop(uid, None)
        self._newly_waiting.pop(uid, None)
        self._seeking.discard(uid)

    def joined(self, node: NodeName) -> None:
        """Take a node to which a pod was bound: pods that must be beside it may fit now."""
        if self._seeking:
            self.changed(node)

    def changed(self, node: NodeName) -> None:
        """Take a node that can take more than before."""
        self._recent.add(node)
        if self._waiting:
            self._nodes[node] = None
            self._is_changed.set()

    def wake(self, uid: PodUid, why: str) -> None:
        """Touch one pod that waits for something else than a node; `why` differs from one time to the next."""
        pod = self._cluster.objects.pods.get(uid)
        self._named.put(pod.namespace if pod else NO_NAMESPACE, uid, why)
        self._is_changed.set()

    async def run(self, leader: Leader) -> None:
        """Touch pods while this replica leads, until cancelled. Nodes are kept until then: it may lead soon."""
        while True:
            await self._is_changed.wait()
            is_done = not leader.refusal() and await self._wake()
            await self._sleep(ROUND_S if is_done else RETRY_S)

    async def _wake(self) -> bool:
        """Touch the pods that changed nodes can take. Return whether all was written; other nodes are kept."""
        self._is_changed.clear()
        nodes, self._nodes = self._nodes, {}
        newly_waiting, self._newly_waiting = self._newly_waiting, {}
        touched: set[PodUid] = set()
        failed = [node for node in nodes if not await self._wake_on(node, self._waiting, touched)]
        recent = [node for node in self._recent.names() if newly_waiting and node not in nodes]
        failed += [node for node in recent if not await self._wake_on(node, newly_waiting, touched)]
        for node in failed:
            self.changed(node)
        return not failed and await self._wake_named()

    async def _wake_named(self) -> bool:
        """Touch some of the pods that were named. Return whether all was written; the other pods are kept."""
        failed: dict[PodUid, str] = {}
        for _ in range(min(NAMED_AT_ONCE, len(self._named))):
            namespace, uid, why = self._named.first()
            self._named.done(namespace, uid, why)
            pod = self._cluster.objects.pods.get(uid)
            if pod is None or pod.node or not self._may_start(pod):
                continue
            if not await self._touch(pod, "GangCanBePlaced", why):
                failed[uid] = why
        for uid, why in failed.items():
            self.wake(uid, why)
        if self._named:
            self._is_changed.set()
        return not failed

    async def _wake_on(self, node: NodeName, waiting: Collection[PodUid], touched: set[PodUid]) -> bool:
        """Touch those pods that a node can take, and add their UIDs to `touched`. Return whether all was written."""
        for pod in await self._freed(node, waiting, touched):
            at = timestamps.micros(self._now())  # the second time within a second would be no change
            if not await self._touch(pod, "NodeCanTakeMore", f"node {node} can take this pod, seen at {at}"):
                return False
            touched.add(pod.uid)
        return True

    async def _freed(self, node: NodeName, waiting: Collection[PodUid], touched: set[PodUid]) -> list[WatchedPod]:
        """Return the waiting pods that a node can take together, the highest priority first."""
        state, found = self._cluster.states.usable(node), []
        refused: set[PodRequest] = set()
        for count, pod in enumerate(self._by_priority(waiting)):
            if count % BATCH == 0:
                await asyncio.sleep(0)
            request = self._cluster.neighbours.request(pod)
            if not isinstance(state, NodeState) or request is None or request in refused or pod.uid in touched:
                continue
            if not self._may_start(pod) or self._is_ruled_out(pod, node):
                continue
            taken = preempt.usage_if_placed(request, state, self._defaults.gpu_policy_for(request.options))
            if taken is None:
                refused.add(request)
            else:
                state = preempt.with_usage(state, taken)
                found.append(pod)
        return found

    def _may_start(self, pod: WatchedPod) -> bool:
        """Whether kube-scheduler would try the pod, and filter would judge it: it is admitted, not gated, and stays."""
        is_held = pod.scheduling.is_gated or pod.scheduling.is_terminating or pod.is_terminal
        return not is_held and pod.is_admitted(self._cluster.slice_mib)

    def _is_ruled_out(self, pod: WatchedPod, name: NodeName) -> bool:
        node = self._cluster.objects.nodes.get(name)
        return node is not None and pod.rules.refusal(name, node.marks) is not None

    def _by_priority(self, waiting: Collection[PodUid]) -> Iterator[WatchedPod]:
        pods = self._cluster.objects.pods
        found = [pods[uid] for uid in waiting if uid in pods]
        return iter(sorted(found, key=lambda pod: -pod.scheduling.priority))

    async def _touch(self, pod: WatchedPod, reason: str, message: str) -> bool:
        """Change a condition of the pod. Return whether it was written, or can never be written."""
        while wait_s := self._bucket.take():
            await self._sleep(wait_s)
        try:
            await pod_conditions.write(self._client, pod, CONDITION, pod_conditions.TRUE, reason, message, self._now())
        except KubernetesError as error:
            log.warning("pod %s/%s could not be woken: %s", pod.namespace, pod.name, error)
            return error.is_definite  # a second request would be refused, too
        return True
