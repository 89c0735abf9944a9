"""Reports refusals to users: an Event on the pod, and an eviction where waiting cannot help.

The kubelet repeats a refused start every few seconds; each refusal is reported once.
"""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, Final, Protocol

from vgpu.errors import KubernetesError
from vgpu.node.pods import BoundPod
from vgpu.node.refusal import Refusal

_MAX_REPORTED: Final = 1000

log = logging.getLogger(__name__)


class PodApi(Protocol):
    """The requests about pods."""

    async def warn(self, pod: BoundPod, reason: str, message: str) -> None:
        """Post a Warning Event. Raises KubernetesError."""

    async def evict(self, pod: BoundPod) -> None:
        """Evict a pod. Raises KubernetesError."""


class RefusalReporter:
    """Reports refusals to the API server, in the background."""

    def __init__(self, api: PodApi) -> None:
        self._api = api
        self._reported: dict[tuple[str, str], None] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def refused(self, pod: BoundPod, refusal: Refusal) -> None:
        """Post an Event; evict the pod where only another pod helps and a controller would create it."""
        key = (pod.uid, str(refusal.reason))
        if key in self._reported:
            return
        self._reported[key] = None
        while len(self._reported) > _MAX_REPORTED:
            del self._reported[next(iter(self._reported))]
        log.warning("pod %s/%s may not start: %s", pod.namespace, pod.name, refusal)
        self._start(self._api.warn(pod, str(refusal.reason), str(refusal)))
        if refusal.is_permanent and pod.has_controller:
            self._start(self._api.evict(pod))

    async def drain(self) -> None:
        """Wait for the reports in flight."""
        await asyncio.gather(*self._tasks)

    def _start(self, call: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(_logged(call))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _logged(call: Coroutine[Any, Any, None]) -> None:
    try:
        await call
    except KubernetesError as error:
        log.warning("a refusal could not be reported: %s", error)
