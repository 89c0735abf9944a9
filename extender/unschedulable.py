"""Explains pods that kube-scheduler refused without asking this extender.

Where kube-scheduler's own checks leave no node, it never calls `/filter`, and the pod's owner sees only a text such as
`Insufficient vgpu.io/slice`. So pods that the watch shows as unschedulable are filtered here, and an Event names every
card. One pod at a time, with a pause after each: explaining a crowd of pods must not slow the verbs.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from extender import explain
from extender.cluster import Cluster
from extender.event_recorder import EventRecorder
from extender.filter import Filter
from extender.objects import Pod

PAUSE_S: Final = 0.02


class UnschedulablePods:
    """Takes pods as the watch shows them, and records why the unschedulable ones wait."""

    def __init__(
        self,
        cluster: Cluster,
        node_filter: Filter,
        recorder: EventRecorder,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._cluster = cluster
        self._filter = node_filter
        self._recorder = recorder
        self._sleep = sleep
        self._queue: dict[str, None] = {}
        self._is_queued = asyncio.Event()

    def add(self, pod: Pod) -> None:
        """Queue a pod for an explanation where kube-scheduler found no node for it."""
        if pod.is_unschedulable and not pod.node and not pod.is_terminal:
            self._queue[pod.uid] = None
            self._is_queued.set()

    async def run(self) -> None:
        """Explain queued pods until cancelled."""
        while True:
            await self._is_queued.wait()
            self._explain(next(iter(self._queue)))
            if not self._queue:
                self._is_queued.clear()
            await self._sleep(PAUSE_S)

    def _explain(self, uid: str) -> None:
        del self._queue[uid]
        pod = self._cluster.objects.pods.get(uid)
        if pod is None or pod.node or (pod.parsed.request is None and not pod.parsed.problems):
            return
        verdict = self._filter.nodes(pod, list(self._cluster.objects.gpunodes))
        if verdict.refused and not verdict.fitting:
            self._recorder.record(pod.reference, *explain.why_pending(pod, verdict, self._cluster))
