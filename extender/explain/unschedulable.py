"""Explains pods that kube-scheduler refused without asking this extender.

Where kube-scheduler's own checks leave no node, it never calls `/filter`, and the pod's owner sees only a text such as
`Insufficient vgpu.io/slice`. So pods that the watch shows as unschedulable are filtered here, and an Event names every
card. Pods with equal requests share one explanation, and namespaces have turns: a crowd of pods that all differ delays
the pods of another namespace by one explanation. The event loop is given back after each 5 ms of work, and rests
for as long: explaining a crowd of pods must not slow the verbs. Waiting pods are explained again every ten minutes,
because their Events expire. A pod that has just had an Event is explained again a little later: what has changed since
then would not be said otherwise, because kube-scheduler may not ask for the pod again for minutes.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import Final

from extender.effects.event_recorder import MIN_INTERVAL_S, EventRecorder
from extender.explain import pending_text
from extender.gangs.tracker import GangTracker
from extender.state import gang_members
from extender.state.cluster import Cluster
from extender.state.gang_members import GangKey
from extender.state.objects import WatchedPod
from extender.verbs.filter import Filter
from extender.verbs.verdict import FilterVerdict
from vgpu.domain.asks.node_rules import NodeRules
from vgpu.domain.asks.request import Parsed, PodRequest
from vgpu.domain.cards.reasons import Reason
from vgpu.domain.identifiers import Namespace, NodeName, PodUid
from vgpu.pacing.fair_queue import FairQueue
from vgpu.placement.choose import NodeRefusal

SLICE_S: Final = 0.005
AGAIN_S: Final = 600.0

_Key = tuple[Parsed, bool, PodRequest | None, GangKey | None, bytes, str]  # equal pods get equal verdicts


class UnschedulablePods:
    """Takes pods as the watch shows them, and records why the unschedulable ones wait.

    `node_filter` must not be the verbs' one: many requests would evict what the verbs need from the cache.
    `clock` is monotonic, in seconds.
    """

    def __init__(
        self,
        cluster: Cluster,
        node_filter: Filter,
        recorder: EventRecorder,
        clock: Callable[[], float],
        gangs: GangTracker,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._cluster = cluster
        self._filter = node_filter
        self._recorder = recorder
        self._gangs = gangs
        self._clock = clock
        self._sleep = sleep
        self._queue: dict[_Key, set[PodUid]] = {}
        self._turns = FairQueue[Namespace, _Key, _Key]()
        self._under_way: set[PodUid] = set()
        self._resting: set[PodUid] = set()
        self._is_queued = asyncio.Event()
        self._slice_began = clock()

    @property
    def waiting(self) -> int:
        """Number of pods that are not explained yet. Those that are being explained count."""
        return sum(len(uids) for uids in self._queue.values()) + len(self._under_way)

    def add(self, pod: WatchedPod) -> None:
        """Queue a pod for an explanation where kube-scheduler found no node for it."""
        if _is_waiting(pod):
            request, gang = self._cluster.neighbours.request(pod), gang_members.key_of(pod)
            is_admitted, said = pod.is_admitted(self._cluster.slice_mib), pod.scheduler_message
            key = pod.parsed, is_admitted, request, gang, pod.rules_json, said if _names_rules(said) else ""
            self._queue.setdefault(key, set()).add(pod.uid)
            self._turns.put(pod.namespace, key, key)
            self._is_queued.set()

    async def run(self) -> None:
        """Explain queued pods, and all waiting ones from time to time, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._run_again())
            group.create_task(self._run_rested())
            while True:
                await self._is_queued.wait()
                self._under_way = self._next()
                if not self._turns:
                    self._is_queued.clear()
                await self._explain(self._under_way)
                self._under_way = set()
                await self._rest()

    def _next(self) -> set[PodUid]:
        """Take the pods of the next namespace's turn; none where they were explained with equal pods of another one."""
        namespace, key, value = self._turns.first()
        self._turns.done(namespace, key, value)
        return self._queue.pop(key, set())

    async def _run_again(self) -> None:
        while True:
            await self._sleep(AGAIN_S)
            await self._add_all(list(self._cluster.objects.pods))

    async def _run_rested(self) -> None:
        while True:
            await self._sleep(MIN_INTERVAL_S)
            rested, self._resting = self._resting, set()
            await self._add_all(rested)

    async def _add_all(self, uids: Collection[PodUid]) -> None:
        for uid in uids:
            pod = self._cluster.objects.pods.get(uid)
            if pod is not None:
                self.add(pod)
            await self._rest()

    async def _explain(self, uids: set[PodUid]) -> None:
        """Explain pods with equal requests by the verdict on the first of them."""
        pods = [pod for uid in uids if (pod := self._cluster.objects.pods.get(uid)) is not None and _is_waiting(pod)]
        resting = {pod.uid for pod in pods if self._recorder.rests(pod.uid)}
        self._resting |= resting
        pods = [pod for pod in pods if pod.uid not in resting]
        why = await self._why(pods[0]) if pods else None
        if why is None:
            return
        for pod in pods:
            self._recorder.record(pod.reference, *why)
            await self._rest()

    async def _why(self, pod: WatchedPod) -> tuple[str, str] | None:
        """Return the reason and the message for a pod that no node can take; None where a node can."""
        key = gang_members.key_of(pod)
        waits = self._gangs.why(key) if key is not None and not pod.parsed.problems else None
        if waits and waits[0] is not Reason.GANG_WAITS:
            return waits
        verdict = await self._verdict(pod)
        if not verdict.refused or verdict.fitting:
            return waits
        return pending_text.why_pending(pod, verdict.reasons, verdict.refused, self._cluster)

    async def _verdict(self, pod: WatchedPod) -> FilterVerdict:
        """Judge all GPUNodes; stop at the first one that fits."""
        verdict = FilterVerdict()
        placement_on, rules = self._filter.placement(pod), pod.rules
        for name in list(self._cluster.objects.gpunodes):
            verdict.add(name, self._refused_by_rules(rules, name) or placement_on(name))
            if verdict.fitting:
                break
            await self._rest()
        return verdict

    def _refused_by_rules(self, rules: NodeRules, name: NodeName) -> NodeRefusal | None:
        """Return the refusal of a node that kube-scheduler refuses for its labels or taints, else None."""
        node = self._cluster.objects.nodes.get(name)
        refused = rules.refusal(name, node.marks) if node is not None else None
        return NodeRefusal(refused.reason) if refused is not None else None

    async def _rest(self) -> None:
        """Give the event loop back where a slice of time is over."""
        if self._clock() - self._slice_began >= SLICE_S:
            await self._sleep(SLICE_S)
            self._slice_began = self._clock()


def _names_rules(said: str) -> bool:
    """Whether kube-scheduler's words are quoted: they differ from one attempt to the next where cards are full."""
    return "taint" in said or "affinity" in said or "unschedul" in said


def _is_waiting(pod: WatchedPod) -> bool:
    if not pod.is_unschedulable or pod.node or pod.is_terminal:
        return False
    return pod.parsed.request is not None or bool(pod.parsed.problems)
