"""Finds the object that made all pods of a job, for jobs of which each part has a controller of its own.

A JobSet makes Jobs, which make the pods; a LeaderWorkerSet makes a StatefulSet of leaders, and each leader owns a
StatefulSet of workers; an MPIJob makes its workers, and a Job for its launcher. Their pods belong to one program. The
owner above a Job that is none of these, such as a CronJob, makes jobs that have nothing to do with each other: there
the pod's own controller counts.

A pod's owner reference is what its creator wrote. So each object of the chain is read from the API server, in the pod's
namespace, and must have the UID of the reference (ADR 190).
"""

import asyncio
import logging
from collections import OrderedDict
from typing import Final, TypeAlias
from urllib.parse import quote

import msgspec

from extender.state.fields import controller
from extender.state.fields.controller import Controller
from extender.state.objects import WatchedPod
from vgpu.adapters.kubernetes.client import KubernetesClient
from vgpu.domain.errors import KubernetesError
from vgpu.domain.identifiers import Namespace
from vgpu.domain.json_types import JsonObject

READ_S: Final = 0.5  # of a Binding's time; kube-scheduler tries again
MAX_KNOWN: Final = 4_096  # owners that are remembered
_LONGEST_CHAIN: Final = 3  # a worker's StatefulSet, its leader, the leaders' StatefulSet
_NOT_FOUND: Final = 404

PARTS: Final = {
    ("batch", "Job"): "/apis/batch/v1/namespaces/{}/jobs/{}",
    ("apps", "StatefulSet"): "/apis/apps/v1/namespaces/{}/statefulsets/{}",
    ("", "Pod"): "/api/v1/namespaces/{}/pods/{}",
}
WHOLES: Final = frozenset(
    {("jobset.x-k8s.io", "JobSet"), ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"), ("kubeflow.org", "MPIJob")}
)
_Key: TypeAlias = tuple[Namespace, Controller]

log = logging.getLogger(__name__)


class JobOwners:
    """The UID of what made each job, by the controller of its pods; read once. `client` is for the API server."""

    def __init__(self, client: KubernetesClient) -> None:
        self._client = client
        self._known: OrderedDict[_Key, str] = OrderedDict()
        self._reading: dict[_Key, asyncio.Task[str]] = {}

    async def of(self, pod: WatchedPod) -> str:
        """Return the UID of what made a pod's job; empty where nothing made the pod, or it is in no gang.

        It is the pod's own controller where the chain above it leads to none of `WHOLES`, and where the extender may
        not read it. Raises KubernetesError where the API server did not answer.
        """
        if pod.controller is None:
            return ""
        key = pod.namespace, pod.controller
        known = self._known.get(key)
        if known is not None:
            return known
        task = self._reading.get(key)
        if task is None:
            task = self._reading[key] = asyncio.create_task(self._find(*key))
            task.add_done_callback(lambda _: self._reading.pop(key, None))
        return await asyncio.shield(task)

    async def _find(self, namespace: Namespace, made_by: Controller) -> str:
        try:
            async with asyncio.timeout(READ_S):
                found = await self._whole(namespace, made_by)
        except TimeoutError:
            raise KubernetesError(0, "Timeout", f"{made_by.kind} {namespace}/{made_by.name}") from None
        except KubernetesError as error:
            if not error.is_definite:
                raise
            log.warning("%s %s/%s: %s: its pods are a job of their own", made_by.kind, namespace, made_by.name, error)
            return made_by.uid
        if len(self._known) >= MAX_KNOWN:
            self._known.popitem(last=False)
        self._known[namespace, made_by] = found
        return found

    async def _whole(self, namespace: Namespace, made_by: Controller) -> str:
        """Return the UID of the first of `WHOLES` in the chain above a pod; of its controller where there is none."""
        reference: Controller | None = made_by
        for _ in range(_LONGEST_CHAIN):
            if reference is None or reference.key not in PARTS:
                break
            reference = await self._above(namespace, reference)
            if reference is not None and reference.key in WHOLES:
                return reference.uid
        return made_by.uid

    async def _above(self, namespace: Namespace, reference: Controller) -> Controller | None:
        """Return the controller of the object of a reference; None where that object does not exist, or has none."""
        path = PARTS[reference.key].format(quote(namespace, safe=""), quote(reference.name, safe=""))
        try:
            metadata = _metadata(await self._client.get(path, timeout=READ_S))
        except KubernetesError as error:
            if error.status == _NOT_FOUND:
                return None
            raise
        return controller.of(metadata) if metadata.get("uid") == reference.uid else None


class _Owned(msgspec.Struct):
    metadata: msgspec.Raw


def _metadata(data: bytes) -> JsonObject:
    """Read an object's metadata; empty where they are none."""
    try:
        found: JsonObject = msgspec.json.decode(msgspec.json.decode(data, type=_Owned).metadata, type=dict)
    except msgspec.MsgspecError:
        return {}
    return found
