"""Acts on what device plugins report of pods: an Event for the owner, and an eviction where asked.

A report counts only for a pod that is bound to the reporting node. A refused pod must ask for a GPU; a pod that uses a
card without a share of it need not, so that it is read from the API server, and it is evicted only where a setting
allows that: a stolen token of a device plugin can have no other pod evicted. The eviction is the API's own, which keeps
PodDisruptionBudgets. Only the leader acts, once for each pod and reason.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from http import HTTPStatus
from typing import Final

from extender.effects import eviction
from extender.effects.event_recorder import EventRecorder
from extender.lead.leader import Leader
from extender.state import pod_reader
from extender.state.fields.refused import RefusedPod
from extender.state.objects import GpuNode, WatchedPod
from extender.state.pod_reader import PodReader
from vgpu.adapters import deep_json
from vgpu.adapters.kubernetes.client import KubernetesClient
from vgpu.domain import names
from vgpu.domain.errors import KubernetesError
from vgpu.domain.identifiers import NodeName, PodUid

PAUSE_S: Final = 1.0  # between two attempts: the watch of the pods may lag, an eviction may be refused for now

_DETECTED: Final = names.WITHOUT_LIMITS | {  # by looking at processes: a setting decides
    names.CARD_USED_WITHOUT_SHARE,
    names.ENDLESS_KERNEL,
}

log = logging.getLogger(__name__)

Key = tuple[str, str]


class NodeRefusals:
    """Takes GPUNodes as the watch shows them, and acts on each new refusal."""

    def __init__(
        self,
        client: KubernetesClient,
        pods: Mapping[PodUid, WatchedPod],
        reader: PodReader,
        recorder: EventRecorder,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        *,
        evicts_uninvited: bool = False,
        spared: Collection[str] = (),
    ) -> None:
        """`evicts_uninvited`: whether pods on a card without a share, or without its limits, are evicted.

        Pods of the `spared` namespaces are not.
        """
        self._client = client
        self._pods = pods
        self._reader = reader
        self._recorder = recorder
        self._sleep = sleep
        self._evicts_uninvited = evicts_uninvited
        self._spared = spared
        self._open: dict[NodeName, dict[Key, RefusedPod]] = {}
        self._done: dict[NodeName, set[Key]] = {}
        self._is_open = asyncio.Event()

    @property
    def waiting(self) -> int:
        """Number of reports that were not acted on yet."""
        return sum(len(found) for found in self._open.values())

    def take(self, gpunode: GpuNode) -> None:
        """Take a GPUNode that is new or changed."""
        node, reported = gpunode.node.name, {(refusal.uid, refusal.reason): refusal for refusal in gpunode.refusals}
        self._done[node] = self._done.get(node, set()) & reported.keys()
        self._open[node] = {key: report for key, report in reported.items() if key not in self._done[node]}
        if self._open[node]:
            self._is_open.set()

    def forget(self, node: NodeName) -> None:
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

    async def _act(self, node: NodeName, key: Key) -> None:
        refused = self._open.get(node, {}).get(key)
        if refused is None:
            return
        try:
            pod = await self._pod(refused)
        except KubernetesError as error:
            log.warning("pod %s/%s of a report could not be read: %s", refused.namespace, refused.name, error)
            return
        if pod is not None and pod.uid == refused.uid and pod.node == node and not pod.is_terminal:
            self._recorder.record(pod.reference, refused.reason, refused.message)
            if self._is_to_be_evicted(refused, pod) and not await self._evict(pod):
                return
        elif refused.reason != names.CARD_USED_WITHOUT_SHARE:
            return  # the watch may be behind
        self._done.setdefault(node, set()).add(key)
        self._open.get(node, {}).pop(key, None)

    async def _pod(self, refused: RefusedPod) -> WatchedPod | None:
        """Return a reported pod that the report may be about, or None. Raises KubernetesError."""
        pod = self._pods.get(refused.uid)
        if refused.reason != names.CARD_USED_WITHOUT_SHARE:
            return None if pod is None or pod.parsed.request is None else pod
        return pod if pod is not None else await self._read(refused)

    async def _read(self, refused: RefusedPod) -> WatchedPod | None:
        """Read a pod without a request, which the watch leaves out. Raises KubernetesError."""
        if not refused.name:
            return None
        try:
            data = await self._client.get(names.pod_path(refused.namespace, refused.name))
        except KubernetesError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return None
            raise
        try:
            return await deep_json.decode(self._reader.encoded, data)
        except pod_reader.UNREADABLE as error:
            log.warning("pod %s/%s of a report is skipped: %s", refused.namespace, refused.name, error)
            return None

    def _is_to_be_evicted(self, refused: RefusedPod, pod: WatchedPod) -> bool:
        if refused.reason not in _DETECTED:
            return refused.evict
        return refused.evict and self._evicts_uninvited and pod.namespace not in self._spared

    async def _evict(self, pod: WatchedPod) -> bool:
        """Evict a pod, and no other pod of its name. Return False where the eviction is to be tried again."""
        try:
            await eviction.evict(self._client, pod)
        except KubernetesError as error:
            log.warning("pod %s/%s could not be evicted: %s", pod.namespace, pod.name, error)
            return error.status in (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT)
        log.info("pod %s/%s was evicted: its node's device plugin asks for it", pod.namespace, pod.name)
        return True
