"""Acts on what device plugins report of pods that they refused: an Event for the owner, and an eviction where asked.

A report counts only for a pod that is bound to the reporting node and asks for a GPU: a device plugin cannot have
another pod evicted. The eviction is the API's own, which keeps PodDisruptionBudgets. Only the leader acts, once for
each pod and reason.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, Protocol

from extender.cluster import Cluster
from extender.event_recorder import EventRecorder
from extender.objects import GpuNode, Pod
from vgpu.adapters.kubernetes.client import Client
from vgpu.errors import KubernetesError

if TYPE_CHECKING:
    from extender.refused import Refused

PAUSE_S: Final = 1.0  # between two attempts: the watch of the pods may lag, an eviction may be refused for now
NOT_FOUND: Final = 404
CONFLICT: Final = 409

log = logging.getLogger(__name__)

Key = tuple[str, str]


class Leader(Protocol):
    """Says whether this replica may change the cluster."""

    def refusal(self) -> str:
        """Return why this replica must not; empty where it may."""


class NodeRefusals:
    """Takes GPUNodes as the watch shows them, and acts on each new refusal."""

    def __init__(
        self,
        client: Client,
        cluster: Cluster,
        recorder: EventRecorder,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._client = client
        self._cluster = cluster
        self._recorder = recorder
        self._sleep = sleep
        self._open: dict[str, dict[Key, Refused]] = {}
        self._done: dict[str, set[Key]] = {}
        self._is_open = asyncio.Event()

    def take(self, gpunode: GpuNode) -> None:
        """Take a GPUNode that is new or changed."""
        node, reported = gpunode.node.name, {(each.uid, each.reason): each for each in gpunode.refusals}
        self._done[node] = self._done.get(node, set()) & reported.keys()
        self._open[node] = {key: each for key, each in reported.items() if key not in self._done[node]}
        if self._open[node]:
            self._is_open.set()

    def forget(self, node: str) -> None:
        """Take a GPUNode's deletion."""
        self._open.pop(node, None)
        self._done.pop(node, None)

    async def run(self, leader: Leader) -> None:
        """Act as long as this replica leads, until cancelled."""
        while True:
            await self._is_open.wait()
            self._is_open.clear()
            if not leader.refusal():
                for node, key in [(node, key) for node, found in self._open.items() for key in found]:
                    await self._act(node, key)
            if any(self._open.values()):
                await self._sleep(PAUSE_S)
                self._is_open.set()

    async def _act(self, node: str, key: Key) -> None:
        refused, pod = self._open.get(node, {}).get(key), self._cluster.objects.pods.get(key[0])
        if refused is None or pod is None or pod.node != node or pod.is_terminal or pod.parsed.request is None:
            return
        self._recorder.record(pod.reference, refused.reason, refused.message)
        if refused.evict and not await self._evict(pod):
            return
        self._done.setdefault(node, set()).add(key)
        self._open.get(node, {}).pop(key, None)

    async def _evict(self, pod: Pod) -> bool:
        """Evict a pod, and no other pod of its name. Return False where the eviction is to be tried again."""
        metadata = {"namespace": pod.namespace, "name": pod.name}
        options = {"preconditions": {"uid": pod.uid}}
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata, "deleteOptions": options}
        try:
            await self._client.post(f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/eviction", body)
        except KubernetesError as error:
            log.warning("pod %s/%s could not be evicted: %s", pod.namespace, pod.name, error)
            return error.status in (NOT_FOUND, CONFLICT)
        log.info("pod %s/%s was evicted: its node's device plugin refuses it", pod.namespace, pod.name)
        return True
