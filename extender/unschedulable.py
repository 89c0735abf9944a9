"""Explains pods that kube-scheduler refused before it asked us.

Where its own checks leave no node, `/filter` is never called, and the pod's owner reads only what they say, such as
`Insufficient vgpu.io/slice` in a cluster whose scheduler does not leave our resources to us. So a pod that the watch
shows as unschedulable is judged here, and its owner told card by card. One at a time, with a pause: explaining a crowd
must not slow the verbs.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from extender import explain
from extender import filter as filter_verb
from extender.cluster import Cluster
from extender.event_recorder import Teller
from extender.objects import Pod
from vgpu.placement.policies import DefaultPolicies

PAUSE_S: Final = 0.02


class Waiting:
    """Takes pods as the watch shows them, and tells the owners of those that wait."""

    def __init__(
        self,
        cluster: Cluster,
        defaults: DefaultPolicies,
        teller: Teller,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._cluster = cluster
        self._defaults = defaults
        self._teller = teller
        self._sleep = sleep
        self._noted: dict[str, None] = {}
        self._any = asyncio.Event()

    def note(self, pod: Pod) -> None:
        """Keep a pod in mind if kube-scheduler found no node for it."""
        if pod.is_unschedulable and not pod.node and not pod.is_over:
            self._noted[pod.uid] = None
            self._any.set()

    async def run(self) -> None:
        """Explain what is noted, until cancelled."""
        while True:
            await self._any.wait()
            self._explain(next(iter(self._noted)))
            if not self._noted:
                self._any.clear()
            await self._sleep(PAUSE_S)

    def _explain(self, uid: str) -> None:
        del self._noted[uid]
        pod = self._cluster.pods.get(uid)
        if pod is None or pod.node or (pod.parsed.request is None and not pod.parsed.problems):
            return
        verdict = filter_verb.filter_nodes(pod, list(self._cluster.inventories), self._cluster, self._defaults)
        if verdict.refused and not verdict.fitting:
            self._teller.tell(pod.reference, *explain.why_pending(pod, verdict, self._cluster))
