"""What users hear of a refusal: an event on the pod, and an end where waiting cannot help.

The kubelet repeats a refused start every few seconds; each refusal is told once.
"""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, Final, Protocol

from vgpu.errors import KubernetesError
from vgpu.node.pods import BoundPod
from vgpu.node.refusal import Refusal

_REMEMBERED: Final = 1000

log = logging.getLogger(__name__)


class Authority(Protocol):
    """The API server, or a stand-in."""

    async def warn(self, pod: BoundPod, reason: str, message: str) -> None:
        """Write an event."""

    async def evict(self, pod: BoundPod) -> None:
        """End a pod."""


class RefusalReporter:
    """Tells the API server of refusals, in the background."""

    def __init__(self, authority: Authority) -> None:
        self._authority = authority
        self._told: dict[tuple[str, str], None] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def refused(self, pod: BoundPod, refusal: Refusal) -> None:
        """Write an event; where the pod's IDs can never fit and a controller would make another, evict the pod."""
        told = (pod.uid, str(refusal.reason))
        if told in self._told:
            return
        self._told[told] = None
        while len(self._told) > _REMEMBERED:
            del self._told[next(iter(self._told))]
        log.warning("pod %s/%s may not start: %s", pod.namespace, pod.name, refusal)
        self._start(self._authority.warn(pod, str(refusal.reason), str(refusal)))
        if refusal.is_permanent and pod.has_controller:
            self._start(self._authority.evict(pod))

    async def drain(self) -> None:
        """Wait for what is still being told."""
        await asyncio.gather(*self._tasks)

    def _start(self, call: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(_quietly(call))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _quietly(call: Coroutine[Any, Any, None]) -> None:
    try:
        await call
    except KubernetesError as error:
        log.warning("not told: %s", error)
