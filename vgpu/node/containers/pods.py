"""The pods that are bound to this node, as the watch shows them."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from vgpu.domain.identifiers import PodUid
from vgpu.node.containers.bound_pod import BoundPod, PodKey

_REMEMBERED = 1000

K = TypeVar("K")
Listener = Callable[[], None]


class NodePods:
    """The reflector's handler: every pod of the node, by UID."""

    def __init__(self) -> None:
        """`on_release` may be set: it is called when a pod that asked for devices is terminal or gone."""
        self.on_release: Listener = lambda: None
        self._by_uid: dict[PodUid, BoundPod] = {}
        self._ended: dict[PodKey, None] = {}
        self._terminal: dict[PodUid, None] = {}
        self._count = 0
        self._changed = asyncio.Condition()
        self._wakers: set[asyncio.Task[None]] = set()

    def replace(self, objects: list[BoundPod], version: str) -> None:  # noqa: ARG002 - the reflector's protocol
        """Take all pods that exist now."""
        before, self._by_uid = self._by_uid, {}
        for pod in objects:
            self._put(pod, before.get(pod.uid))
        if any(pod.device_requests for uid, pod in before.items() if uid not in self._by_uid):
            self.on_release()
        self._wake()

    def upsert(self, pod: BoundPod) -> None:
        """Take a pod that is new or changed."""
        known = self._by_uid.get(pod.uid)
        self._put(pod, known)
        if pod.is_terminal and pod.device_requests and not (known and known.is_terminal):
            self.on_release()
        self._wake()

    def delete(self, pod: BoundPod) -> None:
        """Take a pod's deletion."""
        self._by_uid.pop(pod.uid, None)
        if pod.device_requests:
            self.on_release()
        self._wake()

    def all(self) -> tuple[BoundPod, ...]:
        """Return every pod, in the order in which they first came into the watch."""
        return tuple(sorted(self._by_uid.values(), key=lambda pod: pod.order))

    def get(self, uid: PodUid) -> BoundPod | None:
        """Return the pod with this UID, or None."""
        return self._by_uid.get(uid)

    def named(self, key: PodKey) -> tuple[BoundPod, ...]:
        """Return every pod of that name: two while a recreated pod's predecessor is not gone."""
        return tuple(pod for pod in self.all() if pod.key == key)

    def has_ended(self, key: PodKey) -> bool:
        """Whether the last pod of that name was terminal when it was last seen.

        A pod that ends normally is terminal before it is deleted; a pod that was deleted by force may still run.
        """
        return key in self._ended

    def was_terminal(self, uid: PodUid) -> bool:
        """Whether a pod that may be gone had ended when it was last seen."""
        return uid in self._terminal

    async def wait_for_change(self, timeout: float) -> None:
        """Return after the next change, or after `timeout` seconds."""
        try:
            async with asyncio.timeout(timeout), self._changed:
                await self._changed.wait()
        except TimeoutError:
            return

    def _put(self, pod: BoundPod, known: BoundPod | None) -> None:
        self._by_uid[pod.uid] = replace(pod, order=known.order if known else self._next())
        self._ended.pop(pod.key, None)
        if pod.is_terminal:
            _remember(self._terminal, pod.uid)
        if pod.is_terminal and all(
            incarnation.is_terminal for incarnation in self._by_uid.values() if incarnation.key == pod.key
        ):
            _remember(self._ended, pod.key)

    def _next(self) -> int:
        self._count += 1
        return self._count

    def _wake(self) -> None:
        task = asyncio.get_running_loop().create_task(self._notify())
        self._wakers.add(task)
        task.add_done_callback(self._wakers.discard)

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()


def _remember(known: dict[K, None], key: K) -> None:
    """Add a key, and forget the oldest of more than `_REMEMBERED`."""
    known[key] = None
    while len(known) > _REMEMBERED:
        del known[next(iter(known))]
